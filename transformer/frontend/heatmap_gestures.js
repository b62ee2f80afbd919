// Handles mouse, touch and keyboard on a heatmap: point, pick, drag to zoom or to carry a cell along its row, and go
// from cell to cell.

import { nextCell } from "./grid_navigation.js";
import { followPointer } from "./pointing.js";
/** @import { Cell, Heatmap } from "./heatmap.js" */

const DRAG = 6; // pixels that a pointer moves before it drags

/** @typedef {{ x: number, y: number }} Point in pixels of the picture */

export class Gestures {
  /** @type {{ from: Point, to: Point, moved: boolean, carried: Cell | null, target: Cell | null } | null} */ drag = null;

  isTap = false;

  /** @param {Heatmap} heatmap */
  constructor(heatmap) {
    this.heatmap = heatmap;
    const { marks, events } = heatmap;
    marks.addEventListener("pointermove", (event) => {
      if (this.drag?.carried) this.carryTo(event);
      else if (this.drag && event.pointerType === "mouse") {
        this.drag.to = this.pointOf(event);
        const { from, to } = this.drag;
        this.drag.moved ||= Math.hypot(to.x - from.x, to.y - from.y) > DRAG;
        if (this.drag.moved) this.heatmap.drawMarks();
      }
    });
    marks.addEventListener("pointerdown", (event) => {
      this.isTap = false;
      if (event.button !== 0) return;
      const cell = this.cellOf(event);
      const carried = cell && events.carry?.canTake(cell) ? cell : null;
      this.drag = { from: this.pointOf(event), to: this.pointOf(event), moved: false, carried, target: carried };
      if (carried || (event.pointerType === "mouse" && events.zoom)) marks.setPointerCapture(event.pointerId);
    });
    marks.addEventListener("pointercancel", () => this.endDrag());
    marks.addEventListener("pointerup", (event) => {
      const drag = this.endDrag();
      if (!drag) return;
      if (drag.carried && drag.moved) {
        if (drag.target.column !== drag.carried.column) events.carry.put(drag.carried, drag.target);
        return;
      }
      const [from, to] = [this.heatmap.cellAt(drag.from), this.heatmap.cellAt(drag.to)];
      // Within one cell it was a click of an unsteady hand.
      if (drag.moved && events.zoom && (from.row !== to.row || from.column !== to.column)) {
        events.zoom({
          top: Math.min(from.row, to.row), bottom: Math.max(from.row, to.row) + 1,
          left: Math.min(from.column, to.column), right: Math.max(from.column, to.column) + 1,
        });
        return;
      }
      this.isTap = event.pointerType === "touch";
      if (!this.isTap) this.select(event);
    });
    // A finger clicks once it has left: had its cell been chosen before, and the page scrolled, it would click what is there now.
    marks.addEventListener("click", (event) => this.isTap && this.select(event));
    followPointer(marks, (event) => events.point?.(event && (this.drag?.carried ? this.drag.target : this.cellOf(event))));
    marks.addEventListener("dblclick", () => events.zoom?.(null));
    marks.addEventListener("keydown", (event) => this.onKey(event));
  }

  select(event) {
    const cell = this.cellOf(event);
    if (cell) this.heatmap.events.select?.(cell);
  }

  carryTo(event) {
    const { drag } = this;
    const target = { row: drag.carried.row, column: this.heatmap.cellAt(this.pointOf(event)).column };
    if (target.column === drag.target.column || !this.heatmap.events.carry.canPut(target)) return;
    if (!drag.moved) this.heatmap.events.carry.take(drag.carried); // not before: a finger may only scroll the page
    Object.assign(drag, { target, moved: true });
    this.heatmap.drawMarks();
    this.heatmap.events.point?.(target);
  }

  onKey(event) {
    if (!this.heatmap.data) return;
    if (event.key === "Escape" && this.drag) {
      event.stopPropagation(); // it leaves the drag, and nothing else
      this.endDrag();
      return;
    }
    const { rows, columns } = this.heatmap.data;
    const here = this.heatmap.selected ?? { row: rows - 1, column: 0 };
    const next = nextCell(event, { row: here.row, column: here.column ?? 0 }, rows, columns);
    if (!next) return;
    event.preventDefault();
    (this.heatmap.events.step ?? this.heatmap.events.select)?.(next);
  }

  endDrag() {
    const { drag } = this;
    this.drag = null;
    if (drag?.moved) this.heatmap.drawMarks();
    return drag;
  }

  pointOf(event) {
    const bounds = this.heatmap.marks.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  }

  /** The cell that an event is on, or null. */
  cellOf(event) {
    const point = this.pointOf(event);
    const { left, top, wide, high } = this.heatmap.plotArea ?? {};
    const inside = point.x >= left && point.x < left + wide && point.y >= top && point.y < top + high;
    return inside ? this.heatmap.cellAt(point) : null;
  }
}

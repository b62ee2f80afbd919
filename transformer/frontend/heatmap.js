// A matrix of tokens × tokens (or tokens × dimensions) as a heatmap that can be pointed at, picked from and zoomed.
// The picture is one canvas; what is selected or pointed at lies on a second one above it, so that pointing redraws
// only a few lines. A heatmap holds no state of the page: whoever owns it says what is selected, and hears of events.

import { DIVERGING, PLAIN, SELECTED, SEQUENTIAL, gradient, lookupTable } from "./colours.js";
import { hatchBox, pageOf, prepared } from "./canvas.js";
import { node, attribute, put } from "./dom.js";
import { LINE, LONGEST, cut, fitColumns, fitRows, labelFont, scaled } from "./labels.js";
import { nextCell } from "./keys.js";
import { plainNumber } from "./numbers.js";

/**
 * @typedef {{ row: number, column: number }} Cell
 * @typedef {{ row: number, column: number | null }} Selected a cell, or a whole row
 * @typedef {{ top: number, bottom: number, left: number, right: number }} Window its last row and column are left out
 */

/**
 * What can be carried along its row: a drag from a cell that can be taken carries, any other zooms.
 *
 * @typedef {object} Carry
 * @property {(cell: Cell) => boolean} canTake
 * @property {(cell: Cell) => boolean} canPut
 * @property {(cell: Cell) => void} take
 * @property {(from: Cell, to: Cell) => void} put
 */

/**
 * @typedef {object} HeatmapEvents
 * @property {(cell: Cell | null) => void} [point]
 * @property {(cell: Cell) => void} [select]
 * @property {(cell: Cell) => void} [step] what keys do, if it isn't to select
 * @property {(window: Window | null) => void} [zoom]
 * @property {Carry} [carry]
 */

/**
 * @typedef {object} HeatmapData
 * @property {Float64Array | null} values flat, −∞ where hidden; null, like `limit`, while they are on their way
 * @property {number} rows
 * @property {number} columns
 * @property {string[] | null} rowLabels
 * @property {string[] | null} columnLabels
 * @property {"weights" | "scores" | "visible"} kind from 0 to `limit`; from −limit to limit; one colour
 * @property {number | null} limit
 * @property {boolean} [cut] whether some numbers are beyond the limit, in its colour
 * @property {number} [pitch] pixels of a row
 * @property {number} [tallest] pixels of the picture
 * @property {number} [gutter] pixels left of the cells, which then take all the width
 * @property {number} [widest] pixels of a cell
 * @property {(context: CanvasRenderingContext2D) => void} [above] draws over the cells
 */

const LARGEST_CELL = 40; // pixels
const SMALLEST_SIDE = 120; // pixels of the picture
const HALF_LINE = 7; // pixels above the cells, for the label of a thin first row, in usual type
const DRAG = 6; // pixels that a pointer moves before it drags
const INVALID = 0xff005ed5; // vermilion, as little-endian RGBA: a visible number that isn't finite
const LEVELS = 254; // of a colour scale; the byte above stands for what is hidden
const SCALES = { weights: SEQUENTIAL, scores: DIVERGING, visible: PLAIN };
const PIXELS = Object.fromEntries(Object.entries(SCALES).map(([kind, stops]) => [kind, lookupTable(stops)]));

export class Heatmap {
  /** @type {HTMLCanvasElement} */ buffer; // a pixel for each cell that is drawn

  /**
   * @param {HTMLElement} parent
   * @param {string} name said to screen readers
   * @param {HeatmapEvents} events
   */
  constructor(parent, name, events) {
    this.events = events;
    this.plot = node("div", "plot", parent);
    this.picture = node("canvas", "picture", this.plot);
    this.marks = node("canvas", "marks", this.plot);
    this.marks.tabIndex = 0;
    attribute(this.marks, "role", "application");
    attribute(this.marks, "aria-roledescription", "heatmap");
    attribute(this.marks, "aria-label", name);
    this.legend = node("div", "legend", parent);
    this.low = node("span", "", this.legend);
    this.ramp = node("i", "ramp", this.legend);
    this.high = node("span", "", this.legend);
    this.listen();
  }

  /**
   * @param {HeatmapData} data
   * @param {Window | null} [window] what of it is drawn; null for all
   */
  show(data, window) {
    this.data = data;
    this.window = window ?? { top: 0, bottom: data.rows, left: 0, right: data.columns };
    const { limit, kind, cut } = data;
    put(this.low, limit === null ? "–" : kind === "weights" ? "0" : `${cut ? "≤ " : ""}${plainNumber(-limit, 3)}`);
    put(this.high, limit === null ? "–" : `${cut ? "≥ " : ""}${plainNumber(limit, 3)}`);
    if (this.kind !== kind) this.ramp.style.background = gradient(SCALES[kind]);
    this.kind = kind;
    this.draw();
  }

  /**
   * Outline the selected cell with its row and column, and the cell that is pointed at; null for none.
   *
   * @param {Selected | null} selected
   * @param {Cell | null} pointed
   */
  mark(selected, pointed) {
    this.selected = selected;
    this.pointed = pointed;
    this.drawMarks();
  }

  /** Every so many-th row and column has a label. */
  get steps() {
    return { rows: this.rowFit?.step ?? 1, columns: this.columnFit?.step ?? 1 };
  }

  /** The page has another size or other colours: read them anew when something is drawn. */
  refresh() {
    this.page = null;
  }

  draw() {
    if (!this.page?.width) this.page = pageOf(this.plot);
    if (!this.page.width || !this.data) return;
    this.layOut(this.page.width);
    const context = prepared(this.picture, this.page.width, this.height);
    const { left, top, wide, high } = this.box;
    context.fillStyle = this.page.hidden;
    context.fillRect(left, top, wide, high);
    if (this.data.values) {
      hatchBox(context, this.box, this.page.hatch);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.image(), left, top, wide, high);
    }
    this.drawLabels(context);
    this.data.above?.(context);
    this.drawMarks();
  }

  // The picture's height depends on the whole matrix, not on what is zoomed into: nothing below it moves.
  layOut(width) {
    const { rows, columns } = this.data;
    const { window } = this;
    const context = this.picture.getContext("2d");
    const rowWidths = widthsOf(this.data.rowLabels, LONGEST.rows, context);
    const columnWidths = widthsOf(this.data.columnLabels, LONGEST.columns, context);
    const left = this.data.gutter ?? Math.min(fitRows(rowWidths, 1).width, width / 2.2);
    const wide = Math.min(width - left - 2, this.data.gutter ? Infinity : scaled(this.data.widest ?? LARGEST_CELL) * columns);
    const pitch = this.data.pitch ?? wide / columns;
    const high = Math.max(Math.min(pitch * rows, this.data.tallest ?? 1.35 * wide), this.data.pitch ? 0 : Math.min(SMALLEST_SIDE, wide));
    this.box = { left, top: scaled(HALF_LINE), wide, high, cellWide: wide / (window.right - window.left), cellHigh: high / (window.bottom - window.top) };
    this.rowFit = fitRows(rowWidths, this.box.cellHigh);
    this.columnFit = fitColumns(columnWidths.slice(window.left, window.right), this.box.cellWide);
    const below = this.data.columnLabels ? fitColumns(columnWidths, wide / columns) : { height: 2, turned: false };
    // Room for upright labels is kept while a zoom makes it unnecessary, for the same reason.
    this.height = high + Math.max(below.height, this.data.columnLabels ? this.columnFit.height : 0) + scaled(HALF_LINE) + 2;
  }

  // One pixel a cell; where there are more cells than pixels, a pixel has the one that stands out most.
  image() {
    const { values, columns, kind, limit } = this.data;
    const { window, box } = this;
    const ratio = devicePixelRatio || 1;
    const across = Math.max(1, Math.min(window.right - window.left, Math.round(box.wide * ratio)));
    const down = Math.max(1, Math.min(window.bottom - window.top, Math.round(box.high * ratio)));
    this.pooled = across < window.right - window.left || down < window.bottom - window.top;
    const image = new ImageData(across, down);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = PIXELS[kind];
    const lowest = kind === "weights" ? 0 : -limit;
    const scale = LEVELS / (limit - lowest || 1);
    const rowEdges = edges(window.top, window.bottom, down);
    const columnEdges = edges(window.left, window.right, across);
    for (let y = 0; y < down; y++) {
      for (let x = 0; x < across; x++) {
        let value = values[rowEdges[y] * columns + columnEdges[x]];
        if (this.pooled) value = mostOutstanding(values, columns, rowEdges[y], rowEdges[y + 1], columnEdges[x], columnEdges[x + 1]);
        if (value === -Infinity) continue; // hidden: transparent
        const level = Math.round((value - lowest) * scale);
        pixels[y * across + x] = level >= 0 && level <= LEVELS ? colours[level] : INVALID;
      }
    }
    this.buffer ??= document.createElement("canvas");
    if (this.buffer.width !== across) this.buffer.width = across;
    if (this.buffer.height !== down) this.buffer.height = down;
    this.buffer.getContext("2d").putImageData(image, 0, 0);
    return this.buffer;
  }

  drawLabels(context) {
    const { rowLabels, columnLabels } = this.data;
    const { box, window, rowFit, columnFit } = this;
    context.font = labelFont();
    context.fillStyle = this.page.ink;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let row = window.top; rowLabels && row < window.bottom; row += rowFit.step) {
      const y = box.top + (row - window.top + 0.5) * box.cellHigh;
      context.fillText(cut(rowLabels[row], LONGEST.rows), box.left - 4, y, box.left - 4);
    }
    for (let column = window.left; columnLabels && column < window.right; column += columnFit.step) {
      const x = box.left + (column - window.left + 0.5) * box.cellWide;
      context.save();
      context.translate(x, box.top + box.high + (columnFit.turned ? 4 : scaled(9)));
      if (columnFit.turned) context.rotate(-Math.PI / 2);
      context.textAlign = columnFit.turned ? "right" : "center";
      context.fillText(cut(columnLabels[column], LONGEST.columns), 0, 0);
      context.restore();
    }
  }

  drawMarks() {
    if (!this.box || !this.page) return;
    const context = prepared(this.marks, this.page.width, this.height);
    const { box, window } = this;
    this.drawSelectedLabels(context);
    context.save();
    context.beginPath();
    context.rect(box.left - 2, box.top - 2, box.wide + 4, box.high + 4);
    context.clip();
    const outline = (row, column, rows, columns, colour, thickness) => {
      const x = box.left + (column - window.left) * box.cellWide;
      const y = box.top + (row - window.top) * box.cellHigh;
      for (const [style, width] of [[this.page.paper, thickness + 2], [colour, thickness]]) {
        context.strokeStyle = style;
        context.lineWidth = width;
        context.strokeRect(x, y, columns * box.cellWide, rows * box.cellHigh);
      }
    };
    if (this.selected) {
      const { row, column } = this.selected;
      outline(row, window.left, 1, window.right - window.left, SELECTED, 1);
      if (column !== null) {
        outline(window.top, column, window.bottom - window.top, 1, SELECTED, 1);
        outline(row, column, 1, 1, SELECTED, 2.5);
      }
    }
    if (this.pointed) outline(this.pointed.row, this.pointed.column, 1, 1, this.page.ink, 1.5);
    context.restore();
    if (this.drag?.carried && this.drag.moved) this.drawCarried(context);
    else if (this.drag?.moved) {
      const { from, to } = this.drag;
      context.fillStyle = "rgb(0 114 178 / 0.25)";
      context.fillRect(from.x, from.y, to.x - from.x, to.y - from.y);
    }
  }

  // The labels of what is selected are always there: neighbours that they would touch are covered.
  drawSelectedLabels(context) {
    const { box, window, rowFit, columnFit, data: { rowLabels, columnLabels } } = this;
    const { row, column } = this.selected ?? {};
    const [line, half] = [scaled(LINE), scaled(LINE) / 2];
    context.font = `bold ${labelFont()}`;
    context.textBaseline = "middle";
    if (rowLabels && row >= window.top && row < window.bottom) {
      const y = box.top + (row - window.top + 0.5) * box.cellHigh;
      this.cover(context, nearest(row, window.top, rowFit.step, box.cellHigh, line), (at) => [0, box.top + (at - window.top + 0.5) * box.cellHigh - half, box.left - 2, line]);
      context.textAlign = "right";
      context.fillText(cut(rowLabels[row], LONGEST.rows), box.left - 4, y, box.left - 4);
    }
    if (columnLabels && column !== null && column >= window.left && column < window.right) {
      const x = box.left + (column - window.left + 0.5) * box.cellWide;
      const label = cut(columnLabels[column], LONGEST.columns);
      const width = columnFit.turned ? line : Math.max(context.measureText(label).width, columnFit.step * box.cellWide - 1);
      this.cover(context, nearest(column, window.left, columnFit.step, box.cellWide, width), (at) =>
        [box.left + (at - window.left + 0.5) * box.cellWide - width / 2, box.top + box.high + 3, width, this.height - box.top - box.high]);
      context.save();
      context.translate(x, box.top + box.high + (columnFit.turned ? 4 : scaled(9)));
      if (columnFit.turned) context.rotate(-Math.PI / 2);
      context.textAlign = columnFit.turned ? "right" : "center";
      context.fillText(label, 0, 0);
      context.restore();
    }
  }

  cover(context, places, boxOf) {
    context.fillStyle = this.page.paper;
    for (const at of places) context.fillRect(...boxOf(at));
    context.fillStyle = this.page.ink;
  }

  // Where what is carried comes from, and where it would be put.
  drawCarried(context) {
    const { carried, target } = this.drag;
    const { box, window } = this;
    const [x, y] = [box.left + (target.column - window.left) * box.cellWide, box.top + (target.row - window.top) * box.cellHigh];
    const [start, end, middle] = [box.left + (carried.column - window.left + 0.5) * box.cellWide, x + box.cellWide / 2, y + box.cellHigh / 2];
    context.strokeStyle = context.fillStyle = SELECTED;
    context.lineWidth = 2.5;
    context.beginPath();
    context.moveTo(start, middle);
    context.lineTo(end, middle);
    context.stroke();
    context.globalAlpha = 0.6;
    context.fillRect(x, y, box.cellWide, box.cellHigh);
    context.globalAlpha = 1;
  }

  /** What is carried, { from, to }, or null. */
  get carrying() {
    return this.drag?.carried && this.drag.moved ? { from: this.drag.carried, to: this.drag.target } : null;
  }

  carryTo(event) {
    const { drag } = this;
    const target = { row: drag.carried.row, column: this.cellAt(this.placeOf(event)).column };
    if (target.column === drag.target.column || !this.events.carry.canPut(target)) return;
    if (!drag.moved) this.events.carry.take(drag.carried); // not before: a finger may only scroll the page
    Object.assign(drag, { target, moved: true });
    this.drawMarks();
  }

  listen() {
    const { marks, events } = this;
    marks.addEventListener("pointermove", (event) => {
      if (this.drag?.carried) this.carryTo(event);
      else if (this.drag && event.pointerType === "mouse") {
        this.drag.to = this.placeOf(event);
        const { from, to } = this.drag;
        this.drag.moved ||= Math.hypot(to.x - from.x, to.y - from.y) > DRAG;
        if (this.drag.moved) this.drawMarks();
      }
      events.point?.(this.drag?.carried ? this.drag.target : this.cellOf(event));
    });
    marks.addEventListener("pointerleave", () => events.point?.(null));
    marks.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const cell = this.cellOf(event);
      const carried = cell && events.carry?.canTake(cell) ? cell : null;
      this.drag = { from: this.placeOf(event), to: this.placeOf(event), moved: false, carried, target: carried };
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
      const [from, to] = [this.cellAt(drag.from), this.cellAt(drag.to)];
      // Within one cell it was a click of an unsteady hand.
      if (drag.moved && events.zoom && (from.row !== to.row || from.column !== to.column)) {
        events.zoom({
          top: Math.min(from.row, to.row), bottom: Math.max(from.row, to.row) + 1,
          left: Math.min(from.column, to.column), right: Math.max(from.column, to.column) + 1,
        });
        return;
      }
      const cell = this.cellOf(event);
      if (cell) events.select?.(cell);
    });
    marks.addEventListener("dblclick", () => events.zoom?.(null));
    marks.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    if (!this.data) return;
    if (event.key === "Escape" && this.drag) {
      event.stopPropagation(); // it leaves the drag, and nothing else
      this.endDrag();
      return;
    }
    const { rows, columns } = this.data;
    const here = this.selected ?? { row: rows - 1, column: 0 };
    const next = nextCell(event, { row: here.row, column: here.column ?? 0 }, rows, columns);
    if (!next) return;
    event.preventDefault();
    (this.events.step ?? this.events.select)?.(next);
  }

  endDrag() {
    const { drag } = this;
    this.drag = null;
    if (drag?.moved) this.drawMarks();
    return drag;
  }

  placeOf(event) {
    const bounds = this.marks.getBoundingClientRect();
    return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
  }

  /** The cell nearest to a place. @returns {Cell} */
  cellAt({ x, y }) {
    const { box, window } = this;
    const clamp = (value, low, high) => Math.min(Math.max(value, low), high - 1);
    return {
      row: clamp(window.top + Math.floor((y - box.top) / box.cellHigh), window.top, window.bottom),
      column: clamp(window.left + Math.floor((x - box.left) / box.cellWide), window.left, window.right),
    };
  }

  /** The cell that an event is on, or null. */
  cellOf(event) {
    const place = this.placeOf(event);
    const { left, top, wide, high } = this.box ?? {};
    const inside = place.x >= left && place.x < left + wide && place.y >= top && place.y < top + high;
    return inside ? this.cellAt(place) : null;
  }
}

const measured = { [LONGEST.rows]: new WeakMap(), [LONGEST.columns]: new WeakMap() };

/** Pixels that each label takes; measured once for a list of labels in one font. */
function widthsOf(labels, longest, context) {
  if (!labels) return [];
  const font = labelFont();
  if (measured[longest].get(labels)?.font !== font) {
    context.font = font;
    measured[longest].set(labels, { font, widths: labels.map((label) => context.measureText(cut(label, longest)).width) });
  }
  return measured[longest].get(labels).widths;
}

/** The places whose labels, every so many-th from the first on, that of one would touch; and that one. */
function nearest(at, first, step, pitch, size) {
  const before = first + Math.floor((at - first) / step) * step;
  return [at, before, before + step].filter((each) => Math.abs(each - at) * pitch < size);
}

/** Where each of `count` pixels begins among the cells from one place to another, and where the last ends. */
function edges(from, to, count) {
  return Int32Array.from({ length: count + 1 }, (_, at) => from + Math.floor((at * (to - from)) / count));
}

function mostOutstanding(values, columns, top, bottom, left, right) {
  let found = -Infinity;
  for (let row = top; row < bottom; row++) {
    for (let column = left; column < right; column++) {
      const value = values[row * columns + column];
      if (found === -Infinity || Math.abs(value) > Math.abs(found) || Number.isNaN(value)) found = value;
    }
  }
  return found;
}

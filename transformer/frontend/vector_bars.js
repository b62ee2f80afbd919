// Draws vectors as rows of bars over the same dimensions, one above the other.

import { largestAbsolute } from "./arithmetic.js";
import { SELECTED } from "./colours.js";
import { attribute, focusable, node } from "./dom.js";
import { pageOf, prepared } from "./canvas.js";
import { nextCell } from "./grid_navigation.js";
import { labelFont, scaled } from "./axis_labels.js";
import { plainNumber } from "./number_format.js";
import { followPointer } from "./pointing.js";

/**
 * Rows with the same limit can be compared; one that has no negative values may stand on the ground, `upward`; one of counts has
 * no colour of its own, `plain`. Every row has as many values; NaN stands where a row has no number, and isn't drawn.
 *
 * @typedef {object} BarRow
 * @property {string} name
 * @property {Float64Array} values
 * @property {number} limit
 * @property {boolean} [upward]
 * @property {boolean} [plain]
 */

const ROW = 46; // pixels, in usual type
const GUTTER = 92; // of names and scales on the left
/** Pixels left of the bars, in the page's type. */
export const gutter = () => scaled(GUTTER);
const POSITIVE = "#b2182b";
const NEGATIVE = "#2166ac";

/** Rows that can be compared: drawn to the same scale. @template {{ values: ArrayLike<number> }} Row @param {Row[]} rows */
export function alike(rows) {
  const limit = Math.max(...rows.map(({ values }) => largestAbsolute(values)));
  return rows.map((row) => ({ ...row, limit }));
}

export class VectorBars {
  /** @type {BarRow[]} */ rows;
  /** @type {(at: number) => string} */ label;
  /** @type {number | null} */ mark;
  /** @type {number} */ widest; // pixels of a bar

  /** name: said to screen readers. tip: shows what is pointed at. select(at): a bar was clicked, or Enter pressed on it. */
  constructor(parent, name, tip, select = null) {
    this.tip = tip;
    this.select = select;
    this.plot = node("div", "plot bars", parent);
    this.canvas = node("canvas", "picture", this.plot);
    focusable(this.canvas, "bars", name);
    this.name = name;
    this.at = 0;
    this.canvas.addEventListener("blur", () => this.tip.hide());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    if (select) this.canvas.addEventListener("click", (event) => this.point(event) && select(this.at));
    followPointer(this.canvas, (event) => (event ? this.point(event) : this.tip.hide()));
  }

  /**
   * label(at): what stands there; mark: a bar to be marked, or null; widest: pixels of a bar.
   *
   * @param {BarRow[]} rows
   * @param {{ label?: (at: number) => string, mark?: number | null, widest?: number }} [options]
   */
  show(rows, { label = (at) => `dimension ${at}`, mark = null, widest = Infinity } = {}) {
    Object.assign(this, { rows, label, mark, widest });
    this.count = rows[0].values.length;
    this.at = Math.min(mark ?? this.at, this.count - 1);
    this.draw();
  }

  refresh() {
    this.page = null;
  }

  draw() {
    if (!this.page?.width) this.page = pageOf(this.plot);
    const { width, ink, muted } = this.page;
    if (!width || !this.rows) return;
    const [high, left] = [scaled(ROW), gutter()];
    const context = prepared(this.canvas, width, high * this.rows.length);
    this.pitch = Math.min((width - left - 2) / this.count, this.widest);
    this.rows.forEach(({ name, values, limit, upward, plain }, row) => {
      const middle = high * row + high / 2;
      const ground = upward ? high * (row + 1) - 4 : middle;
      const scale = (ground - high * row - 4) / (limit || 1);
      context.font = labelFont();
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillStyle = ink;
      context.fillText(name, left - 8, middle - scaled(7), left - 10);
      context.fillStyle = muted;
      context.fillText(`${upward ? "to " : "±"}${plain ? limit : plainNumber(limit, 3)}`, left - 8, middle + scaled(8), left - 10);
      context.fillRect(left, ground, this.pitch * this.count, 1);
      const thickness = Math.max(this.pitch - (this.pitch > 4 ? 1 : 0), 0.5);
      for (const [colour, sign] of /** @type {[string, number][]} */ ([[POSITIVE, 1], [NEGATIVE, -1]])) {
        context.beginPath(); // one path a colour: a fill a bar would take most of the time
        for (let at = 0; at < values.length; at++) {
          const size = sign * values[at] * scale;
          if (!(size > 0 && size < Infinity)) continue;
          context.rect(left + at * this.pitch, sign > 0 ? ground - size : ground, thickness, size);
        }
        context.fillStyle = plain ? muted : colour;
        context.fill();
      }
    });
    if (this.mark === null) return;
    context.strokeStyle = SELECTED;
    context.lineWidth = 1.5;
    context.strokeRect(left + this.mark * this.pitch - 1, 1, Math.max(this.pitch, 3) + 1, high * this.rows.length - 2);
  }

  /** Whether the event is at a bar, which is then described. */
  point(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const at = Math.floor((event.clientX - bounds.left - gutter()) / this.pitch);
    const isThere = at >= 0 && at < this.count;
    if (isThere) this.describe((this.at = at));
    else this.tip.hide();
    return isThere;
  }

  onKey(event) {
    if (this.select && event.key === "Enter") this.select(this.at);
    const next = nextCell(event, { row: 0, column: this.at }, 1, this.count);
    if (!next) return;
    event.preventDefault();
    this.describe((this.at = next.column));
  }

  describe(at) {
    const lines = [this.label(at), ...this.rows.filter(({ values }) => !Number.isNaN(values[at])).map(({ name, values }) => `${name}: ${plainNumber(values[at], 5)}`)];
    attribute(this.canvas, "aria-label", `${this.name}. ${lines.join(", ")}`);
    const bounds = this.canvas.getBoundingClientRect();
    this.tip.showAt(bounds.left + gutter() + (at + 0.5) * this.pitch, bounds.top, lines);
  }
}

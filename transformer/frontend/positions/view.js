// Shows the sinusoidal table, and how alike two of its rows are: a view of the page Positions for pages without a server.

import { node, put } from "../dom.js";
import { Matrix } from "../matrix/matrix.js";
import { likenessOf, sinusoidalTable } from "./sinusoidal.js";

/** @import { ViewFrame } from "../page/view_frame.js" */

const TITLE = "Sinusoidal table";
const DIALS = /** @type {const} */ ([["length", "Positions", 2, 512, 1], ["width", "Dimensions", 2, 512, 2], ["base", "Base", 2, 1_000_000, "any"]]);
const COMPARED = /** @type {const} */ ([["one", "Position"], ["other", "and position"]]);

export class PositionsView {
  /** @type {Float32Array} */ table;
  /** @type {number} */ length;
  /** @type {number} */ width;
  /** @type {Record<string, HTMLInputElement>} */ inputs = {};

  /** @param {HTMLElement} root @param {ViewFrame} host */
  constructor(root, host) {
    const heading = node("h2", "", root);
    put(heading, TITLE);
    const dials = node("p", "site-row", root);
    for (const [name, words, low, high, step] of DIALS) {
      const input = this.input(dials, name, words, { min: String(low), max: String(high), step: String(step) });
      input.addEventListener("change", () => input.reportValidity() && host.select({ [name]: input.value }));
    }
    this.matrix = new Matrix({ root: node("div", "", root) });
    const row = node("p", "site-row", root);
    for (const [name, words] of COMPARED) this.input(row, name, words, { min: "0" }).addEventListener("input", () => this.compare());
    this.said = node("output", "", row);
  }

  input(parent, name, words, bounds) {
    const label = node("label", "", parent);
    label.append(`${words} `);
    return (this.inputs[name] = Object.assign(node("input", "", label), { type: "number", required: true, ...bounds }));
  }

  /** @param {unknown} _ @param {Record<string, any>} about length and width of the table, its base, and two positions */
  async begin(_, { length, width, base, positions }) {
    Object.assign(this, { length, width, table: sinusoidalTable(length, width, base) });
    const about = { name: TITLE, across: "dimension", down: "position", unit: "value", kind: "scores", square: false, labels: null, offsets: [0, 0], selected: [positions[0], 0], chooses: false, limit: 1 };
    this.matrix.update({ tensors: { values: { shape: [length, width], data: this.table } }, metadata: { about } }, () => {});
    const values = { length, width, base, one: positions[0], other: positions[1] };
    for (const [name, value] of Object.entries(values)) this.inputs[name].value = String(value);
    for (const [name] of COMPARED) this.inputs[name].max = String(length - 1);
    this.compare();
  }

  compare() {
    const [one, other] = COMPARED.map(([name]) => Number(this.inputs[name].value));
    const isThere = [one, other].every((position) => Number.isInteger(position) && position >= 0 && position < this.length);
    put(this.said, isThere ? `The cosine of the angle between their rows is ${likenessOf(this.table, this.width, one, other).toFixed(3)}.` : `Positions are from 0 to ${this.length - 1}.`);
  }

  setSelection() {}

  draw() {
    if (this.matrix.values) this.matrix.draw();
  }
}

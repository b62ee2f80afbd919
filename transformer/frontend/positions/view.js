// Shows the sinusoidal table, and how alike two of its rows are: a view of the page Positions for pages without a server.

import { node, put } from "../dom.js";
import { Matrix } from "../matrix/matrix.js";
import { likenessOf, sinusoidalTable } from "./sinusoidal.js";

const TITLE = "Sinusoidal table";

export class PositionsView {
  /** @type {Float32Array} */ table;
  /** @type {number} */ length;
  /** @type {number} */ width;
  /** @type {HTMLInputElement} */ one;
  /** @type {HTMLInputElement} */ other;

  /** @param {HTMLElement} root */
  constructor(root) {
    const heading = node("h2", "", root);
    put(heading, TITLE);
    this.matrix = new Matrix({ root: node("div", "", root) });
    const row = node("p", "site-row", root);
    [this.one, this.other] = ["Position", "and position"].map((words) => {
      const label = node("label", "", row);
      label.append(`${words} `);
      const input = Object.assign(node("input", "", label), { type: "number", min: "0" });
      input.addEventListener("input", () => this.compare());
      return input;
    });
    this.said = node("output", "", row);
  }

  /** @param {unknown} _ @param {Record<string, any>} about length and width of the table, its base, and two positions */
  async begin(_, { length, width, base, positions }) {
    Object.assign(this, { length, width, table: sinusoidalTable(length, width, base) });
    const about = { name: TITLE, across: "dimension", down: "position", unit: "value", kind: "scores", square: false, labels: null, offsets: [0, 0], selected: [positions[0], 0], chooses: false, limit: 1 };
    this.matrix.update({ tensors: { values: { shape: [length, width], data: this.table } }, metadata: { about } }, () => {});
    [this.one, this.other].forEach((input, at) => Object.assign(input, { value: String(positions[at]), max: String(length - 1) }));
    this.compare();
  }

  compare() {
    const [one, other] = [this.one, this.other].map(({ value }) => Number(value));
    const isThere = [one, other].every((position) => Number.isInteger(position) && position >= 0 && position < this.length);
    put(this.said, isThere ? `The cosine of the angle between their rows is ${likenessOf(this.table, this.width, one, other).toFixed(3)}.` : `Positions are from 0 to ${this.length - 1}.`);
  }

  setSelection() {}

  draw() {
    if (this.matrix.values) this.matrix.draw();
  }
}

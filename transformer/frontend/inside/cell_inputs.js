// Draws the inputs of the selected cell as small heatmaps, with the cells that it reads outlined.

import { HIDDEN } from "../colours.js";
import { attribute, node, put } from "../dom.js";
import { pageOf, prepared } from "../canvas.js";
import { TensorSlice, sliceDims } from "./tensor_slice.js";
import { imageOf } from "./vector_strips.js";
import { plainName } from "./plain_names.js";

const WORDS = { qkv_head: "", kv_head: "key–value head " }; // before the index in a dimension, where its name says too little
const WIDEST = 190; // pixels of a heatmap
const TALLEST = 84;
const CELL = 12; // pixels of a cell at most
const MOST = 400_000; // cells of a heatmap; of a larger one the outline alone is drawn
const LEVELS = HIDDEN - 1;
const KEPT = 24; // heatmaps that are remembered

export class CellInputs {
  /** open(name): called with the tensor that is to be opened. */
  constructor(parent, open) {
    this.list = node("div", "sources", parent);
    attribute(this.list, "role", "group");
    attribute(this.list, "aria-label", "What the chosen cell reads");
    this.open = open;
    this.slices = new Map();
    this.shown = [];
  }

  /** cell: its index, a number for each of the tensor's dimensions; null for none. */
  show(pass, name, cell) {
    if (this.pass !== pass) this.slices.clear();
    this.pass = pass;
    this.shown = cell && pass.equation(name) ? inputsOf(pass, name, cell, (source, fixed) => this.slice(source, fixed)) : [];
    this.list.hidden = !this.shown.length;
    while (this.list.children.length > this.shown.length) this.list.lastChild.remove();
    while (this.list.children.length < this.shown.length) this.add();
    this.shown.forEach(({ name: source, slice }, at) => {
      const button = /** @type {HTMLButtonElement} */ (this.list.children[at]);
      button.onclick = () => this.open(source);
      button.title = source;
      const held = Object.entries(slice.fixed).map(([dim, index]) => `, ${WORDS[dim] ?? `${dim} `}${pass.label(source, dim, index)}`).join("");
      put(button.firstChild, `${plainName(source, pass.config)}${held}`);
    });
    this.draw();
  }

  add() {
    const button = node("button", "source", this.list);
    node("span", "", button);
    node("canvas", "", button);
  }

  /** Draw again, in the page's present colours. */
  draw() {
    if (!this.shown.length) return;
    const page = pageOf(this.list);
    this.shown.forEach((source, at) => this.drawOne(this.list.children[at].lastChild, source, page));
  }

  drawOne(canvas, { slice, read }, page) {
    const [wide, high] = [Math.min(WIDEST, CELL * slice.columns), Math.max(CELL, Math.min(TALLEST, CELL * slice.rows))];
    const context = prepared(canvas, wide + 4, high + 4);
    context.translate(2, 2);
    context.fillStyle = page.hidden;
    context.fillRect(0, 0, wide, high);
    if (slice.values) slice.image ??= imageOf({ tokens: slice.rows, cells: slice.columns, bytes: bytesOf(slice) }, slice.kind, false);
    context.imageSmoothingEnabled = slice.columns > wide || slice.rows > high;
    if (slice.image) context.drawImage(slice.image, 0, 0, wide, high);
    for (const [colour, thickness] of [[page.paper, 4], [page.ink, 2]]) { // seen on any colour
      Object.assign(context, { strokeStyle: colour, lineWidth: thickness });
      for (const { rows, columns } of read) {
        const [left, right] = columns.map((column) => (column / slice.columns) * wide);
        const [top, bottom] = rows.map((row) => (row / slice.rows) * high);
        context.strokeRect(left - 1, top - 1, Math.max(right - left, 2) + 2, Math.max(bottom - top, 2) + 2);
      }
    }
  }

  /** A part of a tensor, which is remembered once its numbers are there. */
  slice(name, fixed) {
    const key = JSON.stringify([name, fixed]);
    if (!this.slices.get(key)?.values) {
      this.slices.delete(key);
      if (this.slices.size >= KEPT) this.slices.delete(this.slices.keys().next().value);
      this.slices.set(key, new TensorSlice(this.pass, name, fixed, MOST));
    }
    return this.slices.get(key);
  }
}

/**
 * The tensors that a cell reads: [{ name, slice, read }], slice the part of the tensor that is drawn, read the rectangles of its
 * cells that are read: { rows, columns }, each from and up to. sliceOf(name, fixed): makes a slice.
 */
export function inputsOf(pass, name, cell, sliceOf) {
  const all = pass.cellsOf(name, cell);
  return [...new Set(all.map((cells) => cells.name))].map((source) => {
    const cells = all.filter((candidate) => candidate.name === source);
    const { dims, sizes } = pass.describe(source);
    const slice = sliceOf(source, Object.fromEntries(sliceDims(dims, pass.isByRow(source) ? 1 : 2).held.map((dim) => [dim, cells[0].index[dims.indexOf(dim)] ?? 0])));
    const range = (index, axis) => (axis === null ? [0, 1] : index[axis] === null ? [0, sizes[axis]] : [index[axis], index[axis] + 1]);
    const read = cells.filter(({ index }) => isIn(slice, index)).map(({ index }) => {
      const [rows, columns] = slice.axes.map((axis) => range(index, axis));
      return { rows, columns };
    });
    return { name: source, slice, read };
  });
}

/** Whether a cell, or some of those that an index stands for, is in the part of its tensor that is drawn. */
function isIn({ dims, fixed, axes }, index) {
  return dims.every((dim, axis) => axes.includes(axis) || index[axis] === null || index[axis] === fixed[dim]);
}

function bytesOf({ drawn, kind, limit }) {
  const shareOf = (value) => (kind === "weights" ? value / limit : 0.5 + value / (2 * limit));
  return Uint8Array.from(drawn, (value) => (value === -Infinity ? HIDDEN : Math.round(LEVELS * Math.min(1, Math.max(0, shareOf(value))))));
}

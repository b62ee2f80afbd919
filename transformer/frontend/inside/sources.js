// The inputs of a selected cell as small heatmaps, with the cells that it reads outlined.

import { HIDDEN } from "../colours.js";
import { attribute, node, put } from "../dom.js";
import { pageOf, prepared } from "../canvas.js";
import { Plane, planeDims } from "./plane.js";
import { imageOf } from "./strips.js";
import { plainName } from "./plain_names.js";

const WORDS = { qkv_head: "", kv_head: "key–value head " }; // before the place in a dimension, where its name says too little
const WIDEST = 190; // pixels of a heatmap
const TALLEST = 84;
const CELL = 12; // pixels of a cell at most
const MOST = 400_000; // cells of a heatmap; of a larger one the outline alone is drawn
const LEVELS = HIDDEN - 1;
const KEPT = 24; // heatmaps that are remembered

export class Sources {
  /** open(name): called with the tensor that is to be opened. */
  constructor(parent, open) {
    this.list = node("div", "sources", parent);
    attribute(this.list, "role", "group");
    attribute(this.list, "aria-label", "What the chosen cell reads");
    this.open = open;
    this.planes = new Map();
    this.shown = [];
  }

  /** place: of a cell, a number for each of the tensor's dimensions; null for none. */
  show(pass, name, place) {
    if (this.pass !== pass) this.planes.clear();
    this.pass = pass;
    this.shown = place && pass.equation(name) ? sourcesOf(pass, name, place, (source, fixed) => this.plane(source, fixed)) : [];
    this.list.hidden = !this.shown.length;
    while (this.list.children.length > this.shown.length) this.list.lastChild.remove();
    while (this.list.children.length < this.shown.length) this.add();
    this.shown.forEach(({ name: source, plane }, at) => {
      const button = /** @type {HTMLButtonElement} */ (this.list.children[at]);
      button.onclick = () => this.open(source);
      button.title = source;
      const held = Object.entries(plane.fixed).map(([dim, index]) => `, ${WORDS[dim] ?? `${dim} `}${pass.label(source, dim, index)}`).join("");
      put(button.firstChild, `${plainName(source, pass.config.norm)}${held}`);
    });
    this.draw();
  }

  add() {
    const button = node("button", "source", this.list);
    button.type = "button";
    node("span", "", button);
    node("canvas", "", button);
  }

  /** Draw again, in the page's present colours. */
  draw() {
    if (!this.shown.length) return;
    const page = pageOf(this.list);
    this.shown.forEach((source, at) => this.drawOne(this.list.children[at].lastChild, source, page));
  }

  drawOne(canvas, { plane, read }, page) {
    const [wide, high] = [Math.min(WIDEST, CELL * plane.columns), Math.max(CELL, Math.min(TALLEST, CELL * plane.rows))];
    const context = prepared(canvas, wide + 4, high + 4);
    context.translate(2, 2);
    context.fillStyle = page.hidden;
    context.fillRect(0, 0, wide, high);
    if (plane.values) plane.image ??= imageOf({ tokens: plane.rows, cells: plane.columns, bytes: bytesOf(plane) }, plane.kind, false);
    context.imageSmoothingEnabled = plane.columns > wide || plane.rows > high;
    if (plane.image) context.drawImage(plane.image, 0, 0, wide, high);
    for (const [colour, thickness] of [[page.paper, 4], [page.ink, 2]]) { // seen on any colour
      Object.assign(context, { strokeStyle: colour, lineWidth: thickness });
      for (const { rows, columns } of read) {
        const [left, right] = columns.map((column) => (column / plane.columns) * wide);
        const [top, bottom] = rows.map((row) => (row / plane.rows) * high);
        context.strokeRect(left - 1, top - 1, Math.max(right - left, 2) + 2, Math.max(bottom - top, 2) + 2);
      }
    }
  }

  /** A part of a tensor, which is remembered once its numbers are there. */
  plane(name, fixed) {
    const key = JSON.stringify([name, fixed]);
    if (!this.planes.get(key)?.values) {
      this.planes.delete(key);
      if (this.planes.size >= KEPT) this.planes.delete(this.planes.keys().next().value);
      this.planes.set(key, new Plane(this.pass, name, fixed, MOST));
    }
    return this.planes.get(key);
  }
}

/**
 * The tensors that a cell reads: [{ name, plane, read }], plane the part of the tensor that is drawn, read the rectangles of its
 * cells that are read: { rows, columns }, each from and up to. planeOf(name, fixed): makes a plane.
 */
export function sourcesOf(pass, name, place, planeOf) {
  const all = pass.cellsOf(name, place);
  return [...new Set(all.map((cells) => cells.name))].map((source) => {
    const cells = all.filter((each) => each.name === source);
    const { dims, sizes } = pass.describe(source);
    const plane = planeOf(source, Object.fromEntries(planeDims(dims, pass.isByRow(source) ? 1 : 2).held.map((dim) => [dim, cells[0].index[dims.indexOf(dim)] ?? 0])));
    const range = (index, axis) => (axis === null ? [0, 1] : index[axis] === null ? [0, sizes[axis]] : [index[axis], index[axis] + 1]);
    const read = cells.filter(({ index }) => isIn(plane, index)).map(({ index }) => {
      const [rows, columns] = plane.axes.map((axis) => range(index, axis));
      return { rows, columns };
    });
    return { name: source, plane, read };
  });
}

/** Whether a cell, or some of those that an index stands for, is in the part of its tensor that is drawn. */
function isIn({ dims, fixed, axes }, index) {
  return dims.every((dim, axis) => axes.includes(axis) || index[axis] === null || index[axis] === fixed[dim]);
}

function bytesOf({ drawn, kind, limit }) {
  const place = (value) => (kind === "weights" ? value / limit : 0.5 + value / (2 * limit));
  return Uint8Array.from(drawn, (value) => (value === -Infinity ? HIDDEN : Math.round(LEVELS * Math.min(1, Math.max(0, place(value))))));
}

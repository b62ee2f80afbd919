// The weights of one query as draggable bars, for mouse, touch and keyboard.

import { SELECTED } from "./colours.js";
import { attribute, focusable, node, put } from "./dom.js";
import { pageOf, prepared } from "./canvas.js";
import { LONGEST, cut, fitColumns, labelFont, writeColumn } from "./axis_labels.js";
import { plainNumber } from "./number_format.js";

const HIGH = 72; // pixels of a bar of weight 1
const ABOVE = 14; // pixels above it
const WIDEST = 36; // pixels of a key's column
const BAR = "#31688e";

export class WeightBars {
  /** @type {string} */ title;
  /** @type {number[]} */ weights;
  /** @type {string[]} */ labels;
  /** @type {(key: number) => boolean} */ isHidden;
  /** @type {number} */ at;
  /** @type {number | null} */ from; // the key whose weight is carried

  /** move(from, to): all of a key's weight is put on another key; both are indices in the row. */
  constructor(parent, move) {
    this.move = move;
    this.plot = node("div", "plot weights-row", parent);
    this.canvas = node("canvas", "", this.plot);
    focusable(this.canvas, "bars");
    this.readout = node("output", "weights-readout", parent);
    Object.assign(this, { at: 0, from: null });
    this.canvas.addEventListener("pointerdown", (event) => this.take(event));
    this.canvas.addEventListener("pointermove", (event) => this.carry(event));
    this.canvas.addEventListener("pointerup", () => this.drop());
    for (const kind of ["pointercancel", "blur"]) this.canvas.addEventListener(kind, () => this.leave());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.refresh()).observe(this.plot);
  }

  /** title: whose weights they are; weights: of the keys; labels: theirs; isHidden(key): none can be put there; key: chosen. */
  show({ title, weights, labels, isHidden, key }) {
    const isOther = title !== this.title || weights.length !== this.weights.length;
    Object.assign(this, { title, weights, labels, isHidden });
    attribute(this.canvas, "aria-label", `${title}. Arrow keys lead from key to key, Enter takes a weight up and puts it down`);
    if (isOther || key !== this.key) Object.assign(this, { at: key, from: null });
    this.key = key;
    this.draw();
  }

  refresh() {
    this.page = null;
    this.draw();
  }

  draw() {
    if (!this.page?.width) this.page = pageOf(this.plot);
    const { width, ink, muted } = this.page;
    if (!width || !this.weights) return;
    const count = this.weights.length;
    this.pitch = Math.min(WIDEST, width / count);
    const ground = ABOVE + HIGH;
    const measure = this.canvas.getContext("2d");
    measure.font = labelFont();
    const texts = this.labels.map((label) => cut(label, LONGEST.columns));
    const { turned, step, height } = fitColumns(texts.map((text) => measure.measureText(text).width), this.pitch);
    const context = prepared(this.canvas, Math.ceil(this.pitch * count), ground + height + 4);
    context.font = labelFont();
    context.textBaseline = "middle";
    this.weights.forEach((weight, key) => {
      const left = key * this.pitch;
      const isCarried = key === this.from;
      context.globalAlpha = isCarried && this.at !== key ? 0.25 : 1;
      context.fillStyle = isCarried ? SELECTED : BAR;
      context.fillRect(left + 0.1 * this.pitch, ground - HIGH * weight, 0.8 * this.pitch, Math.max(HIGH * weight, weight > 0 ? 1 : 0));
      context.globalAlpha = 1;
      context.fillStyle = this.isHidden(key) ? muted : ink;
      if (key % step && key !== this.at) return;
      writeColumn(context, texts[key], left + this.pitch / 2, ground + (turned ? 4 : 10), turned);
    });
    context.strokeStyle = muted;
    context.strokeRect(0, ground + 0.5, this.pitch * count, 0);
    if (this.isCarrying) {
      const high = HIGH * this.bothOf(this.from, this.at);
      context.fillStyle = SELECTED;
      context.globalAlpha = 0.6;
      context.fillRect((this.at + 0.1) * this.pitch, ground - high, 0.8 * this.pitch, high);
      context.globalAlpha = 1;
    }
    context.strokeStyle = SELECTED;
    context.lineWidth = 2;
    context.strokeRect(this.at * this.pitch + 1, 1, Math.max(this.pitch - 2, 2), ground);
    put(this.readout, this.valueInWords());
  }

  get isCarrying() {
    return this.from !== null && this.from !== this.at;
  }

  valueInWords() {
    if (this.from !== null) return this.moveInWords(this.from, this.at);
    return `${this.named(this.at)}; drag a weight to another key`;
  }

  /** What is carried from a key to a key. */
  moveInWords(from, to) {
    if (from === to) return `${this.named(from)} is taken up`;
    return `${this.named(from)} → “${this.labels[to]}”, which then has ${plainNumber(this.bothOf(from, to), 3)}`;
  }

  named(key) {
    return `“${this.labels[key]}” ${plainNumber(this.weights[key], 3)}`;
  }

  bothOf(from, to) {
    return Math.min(1, this.weights[from] + this.weights[to]);
  }

  keyAt(event) {
    const index = Math.floor((event.clientX - this.canvas.getBoundingClientRect().left) / this.pitch);
    return Math.max(0, Math.min(this.weights.length - 1, index));
  }

  take(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.from = this.at = this.keyAt(event);
    this.draw();
  }

  carry(event) {
    if (this.from === null || !this.canvas.hasPointerCapture(event.pointerId)) return;
    const key = this.keyAt(event);
    if (!this.isHidden(key)) this.at = key;
    this.draw();
  }

  drop() {
    const { from, at, isCarrying } = this;
    this.from = null;
    this.draw();
    if (isCarrying && this.weights[from] > 0) this.move(from, at);
  }

  /** What is carried is back where it was. */
  leave() {
    if (this.from === null) return;
    this.at = this.from;
    this.from = null;
    this.draw();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.weights) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape" && this.from !== null) this.leave();
    else if (event.key === "Enter" || event.key === " ") this.from === null ? this.pickUp() : this.drop();
    else if (step) this.goTo(step);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  pickUp() {
    this.from = this.at;
    this.draw();
  }

  goTo(step) {
    const open = this.weights.map((_, key) => key).filter((key) => !this.isHidden(key));
    const index = Math.max(0, Math.min(open.length - 1, open.indexOf(this.at) + step));
    this.at = open[index];
    this.draw();
  }
}

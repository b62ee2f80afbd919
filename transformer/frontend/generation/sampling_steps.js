// Draws how the next token is sampled, in five steps: logits, ÷ temperature, top-k and top-p, probabilities, and the random
// number that falls into one token's share. Each column is a token, the same in each step; the last step shows shares.
import { attribute, focusable, put } from "../dom.js";
import { pageOf, prepared, size } from "../canvas.js";
import { nextCell } from "../grid_navigation.js";
import { followPointer } from "../pointing.js";
import { cut, labelFont, scaled } from "../axis_labels.js";
import { drawing, landing, shareOf } from "./sampling.js";
import { percent, plainNumber } from "../number_format.js";
/** @import { Tooltip } from "../tooltip.js" */

const ROW = 44; // height of a row of bars, in pixels
const NAMES = 16; // height of the labels below it, in usual type
const POINT = 52; // height of the interval
const MOST_COLUMNS = 300; // a larger vocabulary shows its likeliest tokens
const DRAWN_COLUMNS = 64;
const LANDED = "#d55e00";
const FOUR = 4; // significant digits

export class SamplingSteps {
  /** @type {HTMLElement} */ root;
  /** @type {HTMLElement} */ drawn;
  /** @type {Tooltip} */ tip;

  constructor({ drawn, root }, tip) {
    Object.assign(this, { root, drawn, tip });
    this.steps = {};
    for (const item of drawn.querySelectorAll("[data-drawn]")) {
      const [text, canvas] = [item.querySelector(".text"), item.querySelector("canvas")];
      this.steps[item.dataset.drawn] = { text, canvas, plot: canvas.parentElement, isInSight: true };
      followPointer(canvas, (event) => (event ? this.onPoint(event, item.dataset.drawn) : this.point(null)));
    }
    const { canvas } = this.steps.logits;
    focusable(canvas, "bars", "How the next token is drawn, token by token of the vocabulary"); // the others show the same tokens
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    canvas.addEventListener("blur", () => this.point(null));
    this.pointed = null;
    const sight = new IntersectionObserver((changes) => this.look(changes));
    for (const item of drawn.querySelectorAll("[data-drawn]")) sight.observe(item);
  }

  // Draw only visible steps: while a text is written, all of them change with every token.
  look(changes) {
    for (const { target, isIntersecting } of changes) this.steps[target.dataset.drawn].isInSight = isIntersecting;
    if (Object.values(this.steps).some(({ isInSight, isLate }) => isInSight && isLate)) this.draw();
  }

  /**
   * what: { logits, settings, point, written, label(id) }. logits: null until they arrive; point: null if the random number isn't
   * known, and then the written token's share is shown. Returns the token that is drawn, or null.
   */
  show(what) {
    this.what = what;
    this.sampled = null;
    if (!what.logits) {
      for (const [name, { text }] of Object.entries(this.steps)) put(text, name === "logits" ? "of this token are on their way." : "");
      this.draw();
      return null;
    }
    const { logits, settings, point, written } = what;
    const steps = drawing(logits, settings);
    const landed = settings.temperature === 0 ? { token: steps.order[0], from: 0, to: 1 }
      : point === null ? shareOf(written, steps) : landing(point, steps);
    const scaled = settings.temperature === 0 ? logits : Float64Array.from(logits, (logit) => logit / settings.temperature);
    this.sampled = { ...steps, scaled, probabilities: steps.weights.map((weight) => weight / steps.total), landed, rank: steps.order.indexOf(landed.token) };
    const count = logits.length;
    this.columns = count <= MOST_COLUMNS ? Int32Array.from({ length: count }, (_, id) => id) : steps.order.slice(0, DRAWN_COLUMNS).sort();
    this.say();
    this.draw();
    return landed.token;
  }

  /** The token that is drawn; null until it is known. */
  get token() {
    return this.sampled?.landed.token ?? null;
  }

  say() {
    const { logits, settings, point, label } = this.what;
    const { landed: { token, from, to }, scaled, probabilities, order, ofTopK, kept, rank } = this.sampled;
    const name = `“${label(token)}”`;
    const n = (value) => plainNumber(value, FOUR);
    const isGreedy = settings.temperature === 0;
    const some = this.columns.length < logits.length ? ` The ${this.columns.length} likeliest are drawn.` : "";
    put(this.steps.logits.text, `One number for each of the ${logits.length} tokens. ${name} has ${n(logits[token])}.${some}`);
    put(this.steps.scaled.text, isGreedy ? "Nothing is divided by 0: the largest logit is taken."
      : `${name}: ${n(logits[token])} ÷ ${settings.temperature} = ${n(scaled[token])}`);
    const cuts = [];
    if (settings.top_k && ofTopK < logits.length) cuts.push(`top-k leaves ${ofTopK}`);
    if (settings.top_p < 1) cuts.push(`top-p leaves ${kept}`);
    put(this.steps.kept.text, isGreedy ? `Only the likeliest is left: ${name}.`
      : cuts.length ? `Of ${logits.length} tokens ${cuts.join(", ")}. ${name} ranks ${rank + 1}.` : `Both are off: all ${logits.length} tokens are left.`);
    const top = scaled[order[0]];
    const isCut = probabilities[token] === 0; // only a token that was chosen by hand can be cut off
    put(this.steps.probabilities.text, isGreedy ? `${name} has all of it.` : isCut ? `${name} is cut off, and has 0.`
      : `${name}: exp(${n(scaled[token])} − ${n(top)}) ÷ ${n(this.sampled.total)} = ${percent(probabilities[token]).replace(">", "over ")}`);
    const share = `${from.toFixed(FOUR)} and ${to.toFixed(FOUR)}`;
    put(this.steps.point.text, isGreedy ? `None is needed: ${name} is the likeliest.` : isCut ? `No random number falls on ${name}: it is cut off.`
      : point === null ? `The share of ${name} lies between ${share}.`
      : `${point.toFixed(FOUR)} falls between ${share}, the share of ${name}.`);
  }

  /** The page has another size or other colours. */
  refresh() {
    this.page = null;
  }

  draw() {
    if (this.drawn.hidden) return;
    if (!this.page?.width) {
      this.page = pageOf(this.steps.logits.plot);
      this.accent = getComputedStyle(this.root).getPropertyValue("--accent") || this.page.ink;
    }
    if (!this.page.width) return;
    if (!this.sampled) {
      for (const [name, { canvas }] of Object.entries(this.steps)) prepared(canvas, this.page.width, this.heightOf(name));
      return;
    }
    const { logits } = this.what;
    const { scaled, probabilities } = this.sampled;
    // One scale for both, so that the effect of the temperature is visible.
    const range = extentOf([logits, scaled]);
    const most = probabilities[this.sampled.order[0]];
    this.drawBars("logits", logits, range, false);
    this.drawBars("scaled", scaled, range, false);
    this.drawBars("kept", scaled, range, true);
    this.drawBars("probabilities", probabilities, { low: 0, high: most || 1 }, true);
    this.drawShares();
  }

  heightOf(name) {
    return name === "point" ? POINT : name === "probabilities" ? ROW + scaled(NAMES) : ROW;
  }

  /** The context of a step's cleared canvas; null for an invisible one, which only gets its size. */
  contextOf(name) {
    const step = this.steps[name];
    /** @type {[HTMLCanvasElement, number, number]} */
    const box = [step.canvas, this.page.width, this.heightOf(name)];
    step.isLate = !step.isInSight;
    if (step.isInSight) return prepared(...box);
    size(...box);
    return null;
  }

  drawBars(name, values, { low, high }, cuts) {
    const { page, columns, accent, pointed } = this;
    const { landed: { token }, weights } = this.sampled;
    const context = this.contextOf(name);
    if (!context) return;
    const pitch = (page.width - 2) / columns.length;
    const thickness = Math.max(pitch - (pitch > 4 ? 1 : 0), 0.5);
    const scale = (ROW - 8) / (high - low || 1);
    const zero = ROW - 2 + low * scale;
    context.fillStyle = page.muted;
    context.fillRect(0, zero, page.width, 1);
    for (const { colour, belongs } of [
      { colour: accent, belongs: (id) => id !== token && !(cuts && weights[id] === 0) },
      { colour: page.hidden, belongs: (id) => cuts && weights[id] === 0 },
      { colour: LANDED, belongs: (id) => id === token },
    ]) {
      context.beginPath(); // one path per colour
      columns.forEach((id, at) => {
        if (!belongs(id) || !Number.isFinite(values[id])) return;
        const size = values[id] * scale;
        context.rect(1 + at * pitch, size > 0 ? zero - size : zero, thickness, Math.max(Math.abs(size), 1));
      });
      context.fillStyle = colour;
      context.fill();
    }
    const frame = (id, colour) => {
      const at = columns.indexOf(id);
      if (at < 0) return;
      context.strokeStyle = colour;
      context.strokeRect(0.5 + at * pitch, 1, Math.max(pitch, 2), ROW - 2);
    };
    frame(token, LANDED);
    if (pointed !== null) frame(pointed, page.ink);
    if (name === "probabilities") this.drawNames(context, pitch);
  }

  drawNames(context, pitch) {
    const { columns, page, pointed } = this;
    const { token } = this.sampled.landed;
    context.font = labelFont();
    context.textAlign = "center";
    context.textBaseline = "middle";
    const taken = [];
    const write = (id, most) => {
      const label = cut(this.what.label(id), most);
      const half = context.measureText(label).width / 2 + 1;
      const x = Math.max(Math.min(1 + (columns.indexOf(id) + 0.5) * pitch, page.width - half), half);
      if (taken.some(([from, to]) => x - half < to && from < x + half)) return;
      taken.push([x - half, x + half]);
      context.fillText(label, x, ROW + scaled(NAMES) / 2);
    };
    context.fillStyle = page.ink; // the drawn token and the one under the pointer have room first
    for (const id of [pointed, token]) if (id !== null && columns.includes(id)) write(id, 8);
    context.fillStyle = page.muted;
    if (pitch >= scaled(9)) for (const id of columns) if (id !== token && id !== pointed) write(id, Math.max(1, Math.floor(pitch / scaled(7))));
  }

  drawShares() {
    const { page, accent, pointed } = this;
    const { probabilities, landed } = this.sampled;
    const { settings, point, label } = this.what;
    const context = this.contextOf("point");
    if (!context) return;
    const [left, width, top, high] = [1, page.width - 2, 16, 22];
    context.font = labelFont();
    context.textBaseline = "middle";
    context.textAlign = "center";
    let from = 0;
    let turn = 0;
    let framed = null;
    probabilities.forEach((share, id) => {
      if (share === 0) return;
      const [x, wide] = [left + from * width, share * width];
      context.globalAlpha = id === landed.token ? 1 : turn % 2 ? 0.45 : 0.75;
      context.fillStyle = id === landed.token ? LANDED : accent;
      context.fillRect(x, top, wide, high);
      context.globalAlpha = 1;
      if (id === pointed) framed = [x, wide];
      if (wide >= 13) {
        context.fillStyle = page.ink;
        context.fillText(cut(label(id), Math.max(1, Math.floor(wide / 7))), x + wide / 2, top + high + 8);
      }
      from += share;
      turn += 1;
    });
    context.fillStyle = page.muted;
    context.textAlign = "left";
    context.fillText("0", left, 7);
    context.textAlign = "right";
    context.fillText("1", left + width, 7);
    if (framed) {
      context.strokeStyle = page.ink;
      context.strokeRect(framed[0], top - 1, Math.max(framed[1], 2), high + 2);
    }
    if (settings.temperature === 0 || point === null) return;
    const x = left + point * width;
    context.fillStyle = page.ink;
    context.fillRect(x - 0.75, top - 3, 1.5, high + 6);
    context.beginPath();
    context.moveTo(x - 5, top - 10);
    context.lineTo(x + 5, top - 10);
    context.lineTo(x, top - 3);
    context.fill();
  }

  onPoint(event, name) {
    if (!this.sampled) return;
    const bounds = this.steps[name].canvas.getBoundingClientRect();
    const at = (event.clientX - bounds.left - 1) / (bounds.width - 2);
    if (at < 0 || at >= 1) this.point(null);
    else this.point(name === "point" ? landing(at, this.sampled).token : this.columns[Math.floor(at * this.columns.length)], name, event.clientX);
  }

  onKey(event) {
    if (!this.sampled) return;
    const { columns } = this;
    const here = this.pointed ?? this.sampled.landed.token;
    const next = nextCell(event, { row: 0, column: Math.max(columns.indexOf(here), 0) }, 1, columns.length);
    if (event.key === "Escape") this.point(null);
    if (!next) return;
    event.preventDefault();
    const bounds = this.steps.logits.canvas.getBoundingClientRect();
    const x = bounds.left + ((next.column + 0.5) / columns.length) * bounds.width;
    this.point(columns[next.column], "logits", x);
  }

  /** Mark a token in all steps; null for none. */
  point(id, name, x) {
    const isNew = id !== this.pointed;
    this.pointed = id;
    if (id === null || !this.sampled) this.tip.hide();
    else {
      const lines = this.describe(id);
      if (name === "logits") attribute(this.steps.logits.canvas, "aria-label", `How the next token is drawn. ${lines.join(", ")}`);
      this.tip.showAt(x, this.steps[name].canvas.getBoundingClientRect().top, lines);
    }
    if (isNew) this.draw();
  }

  describe(id) {
    const { logits, label, settings } = this.what;
    const { scaled, probabilities, order } = this.sampled;
    const lines = [`“${label(id)}”, id ${id}, rank ${order.indexOf(id) + 1}`, `logit ${plainNumber(logits[id], FOUR)}`];
    if (settings.temperature > 0) lines.push(`÷ temperature: ${plainNumber(scaled[id], FOUR)}`);
    lines.push(probabilities[id] > 0 ? `probability ${percent(probabilities[id])}` : "cut off");
    return lines;
  }
}

/** The lowest and highest of finite numbers, zero included. */
function extentOf(lists) {
  let [low, high] = [0, 0];
  for (const list of lists) {
    for (const value of list) {
      if (value < low && value > -Infinity) low = value;
      if (value > high && value < Infinity) high = value;
    }
  }
  return { low, high };
}

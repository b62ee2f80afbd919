// Draws one cell by hand: its equation with the numbers filled in, its terms as bars, and the recomputed number beside
// the model's own. Every cell that it reads can be opened.

import { largestAbsolute } from "../arithmetic.js";
import { VectorBars } from "../vector_bars.js";
import { sayCompared } from "../number_check.js";
import { attribute, button, node, onWidth, put, putBoth, untranslated } from "../dom.js";
import { exactNumber } from "../number_format.js";
import { tipWithin } from "../tooltip.js";
import { capital, plainName } from "./plain_names.js";
import { SmallPlot } from "./small_plots.js";

const WIDEST = 44; // pixels of a bar

export class CellView {
  /** events: open(name, index), called with a cell of another tensor. */
  constructor(parent, events) {
    this.events = events;
    const root = (this.root = node("section", "numbers by-hand", parent));
    attribute(root, "aria-label", "By hand");
    put(node("h2", "", root), "By hand");
    this.where = node("p", "where", root);
    this.formula = untranslated(node("p", "formula", root));
    this.lines = untranslated(node("ol", "lines", root));
    this.badge = node("p", "badge", root);
    this.small = new SmallPlot(root);
    this.bars = new VectorBars(root, "What the cell is made of", tipWithin(root), (at) => this.look(at));
    this.term = node("p", "term", root);
    this.links = node("p", "links", root);
    attribute(this.links, "role", "group");
    attribute(this.links, "aria-label", "The cells it is made of");
    this.shares = node("ul", "shares", root);
    onWidth(root, () => this.draw());
  }

  /** index: a number for each of the tensor's dimensions, or null while no cell is chosen. */
  show(pass, name, index) {
    const entry = pass.describe(name);
    const isSame = this.shown?.pass === pass && this.shown.name === name && String(this.shown.index) === String(index);
    if (isSame && this.arithmetic) return; // its numbers don't change
    const isReady = index && pass.has(name, index[pass.partAxis(name)] ?? null);
    const arithmetic = (this.arithmetic = isReady ? pass.arithmetic(name, index) : null);
    this.shown = { pass, name, index };
    attribute(this.root, "data-state", arithmetic ? "shown" : index ? (isReady && !pass.equation(name) ? "learned" : "waiting") : "none");
    put(this.where, index ? this.sentence(pass, name, index, isReady) : "Click a cell to see what it is made of.");
    put(this.formula, entry.formula);
    this.formula.hidden = !arithmetic || !entry.formula;
    for (const part of [this.lines, this.badge, this.term, this.links, this.shares]) part.hidden = !arithmetic;
    this.bars.plot.hidden = !arithmetic?.rows.length;
    this.small.show(arithmetic?.picture ?? null);
    if (!arithmetic) return;
    this.lines.replaceChildren();
    for (const line of arithmetic.lines) put(node("li", "", this.lines), line);
    sayCompared(this.badge, arithmetic.difference, pass.magnitude(name), pass.setBy(name, index), pass.rounding);
    this.showShares(arithmetic);
    this.look(arithmetic.mark ?? strongest(arithmetic.rows.at(-1)?.values));
  }

  sentence(pass, name, index, isReady) {
    const where = `${capital(plainName(name, pass.config))}, ${pass.cellInWords(name, index)}`;
    if (!isReady) return `${where}. ${pass.absent.cell}`;
    const value = valueInWords(name, pass.value(name, index));
    if (!pass.equation(name)) return `${where}: ${value}. Learned in training, not computed in this pass.`;
    return this.arithmetic ? `${where}: ${value}` : `${where}: ${value}. ${pass.absent.cell}`;
  }

  /** Look at one of the terms: its numbers in words, and the cells they are in. */
  look(at) {
    const { rows, along, mark } = this.arithmetic;
    this.at = along ? Math.min(at ?? 0, along.length - 1) : null;
    this.term.hidden = this.at === null;
    this.showLinks();
    if (this.at === null) return;
    const { label } = along;
    this.bars.show(rows.map((row) => ({ ...row, limit: row.limit ?? largestAbsolute(row.values) })), { label, mark: this.at, widest: WIDEST });
    const there = rows.filter(({ values }) => !Number.isNaN(values[this.at])); // many terms together have no number of their own in some
    const numbers = there.map(({ name, values }) => `${name} ${exactNumber(values[this.at])}`).join(", ");
    const which = mark === this.at ? "This cell" : mark === null && this.at === strongest(rows.at(-1).values) ? "The strongest term" : "The chosen term";
    put(this.term, `${which}: ${label(this.at)}. ${numbers}. Choose another bar to see its numbers.`);
  }

  /** The cells of the term that is looked at, to be opened. */
  showLinks() {
    const links = this.arithmetic.links.map((link) => ({ ...link, index: link.at(this.at ?? 0) })).filter(({ index }) => index);
    const { pass } = this.shown;
    while (this.links.children.length > links.length) this.links.lastChild.remove();
    links.forEach(({ title, name, index }, which) => {
      const button = /** @type {HTMLButtonElement} */ (this.links.children[which] ?? node("button", "", this.links));
      putBoth(button, title, `${name}[${index.join(", ")}]`);
      button.title = `${plainName(name, pass.config)}, ${pass.cellInWords(name, index)}`;
      button.onclick = () => this.events.open?.(name, index);
    });
    this.links.hidden = !links.length;
  }

  showShares({ shares }) {
    const limit = largestAbsolute(shares.map(({ value }) => value)) || 1;
    this.shares.hidden = !shares.length;
    this.shares.replaceChildren(...shares.map(({ title, value, name, index }) => {
      const item = node("li", "");
      button(item, title, () => this.events.open?.(name, index));
      const meter = node("span", "meter", item);
      meter.style.setProperty("--share", String(Math.abs(value) / limit));
      meter.dataset.sign = value < 0 ? "negative" : "positive";
      put(node("span", "", item), exactNumber(value));
      return item;
    }));
  }

  /** Draw again, in the page's present size and colours. */
  draw() {
    this.bars.refresh();
    if (this.arithmetic?.rows.length) this.bars.draw();
    this.small.draw();
  }
}

/** A number of a tensor as it is said: a mask's are truth values. */
export function valueInWords(name, value) {
  return name.endsWith("hook_mask") ? (value ? "True" : "False") : exactNumber(value, 6);
}

/** Where the largest absolute value is; infinities are left out. */
function strongest(values = []) {
  let strongest = 0;
  values.forEach((value, at) => {
    if (!Number.isFinite(values[strongest]) || (Number.isFinite(value) && Math.abs(value) > Math.abs(values[strongest]))) strongest = at;
  });
  return strongest;
}

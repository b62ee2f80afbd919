// Draws the drawer in which a visitor changes what is selected: ablates (zero or mean) or scales a part, removes a
// rule, or sets one weight by hand. It only says what is wanted; the host changes the model, and shows it anew.
// Positions are those of the whole text.

import { attribute, button, choice, isComposing, list, node, offer, put } from "./dom.js";
import { codeOf, parsed, withoutDials } from "./intervention_codes.js";
import { plainNumber } from "./number_format.js";
import { WeightBars } from "./weight_bars.js";

/** @import { Wish } from "./changes.js" */

/**
 * @typedef {{ code: string, words: string }} Described a code, and what it says
 * @typedef {{ title: string, point: string, head: number | null }} Part what can be changed
 */

const FACTORS = { min: "-2", max: "2", step: "0.1" };
const EVERYWHERE = "";

const scaled = ({ point, head }, position, factor) => codeOf("scale", { point, head, position, factor });

export class InterventionControls {
  /** @type {() => void} */ onToggle;

  /**
   * @param {HTMLButtonElement} opener of the drawer
   * @param {HTMLElement} parent where it is
   * @param {((wish: Wish) => void) | null} [change] none where the model can't be changed
   */
  constructor(opener, parent, change) {
    this.opener = opener;
    this.root = parent;
    parent.classList.add("changing");
    this.change = change;
    opener.addEventListener("click", () => this.toggle(parent.hidden));
    parent.addEventListener("keydown", (event) => {
      event.stopPropagation(); // its keys are its own
      if (event.key !== "Escape" || isComposing(event)) return;
      this.toggle(false);
      opener.focus();
    });
    this.lines = node("div", "lines", parent);
    this.part = choice(this.lines, "What", () => this.settle());
    this.where = choice(this.lines, "Where", () => this.settle());
    const acts = node("div", "acts", parent);
    button(acts, "Zero ablation", () => this.add((part, position) => scaled(part, position, 0)));
    button(acts, "Mean ablation", () => this.add((part, position) => codeOf("mean", { ...part, position })));
    const slider = node("label", "setting", acts);
    slider.append("Scale ");
    this.factor = Object.assign(node("input", "", slider), { type: "range", ...FACTORS, value: "1" });
    this.factorShown = node("output", "", slider);
    this.factor.addEventListener("input", () => this.showDials());
    this.factor.addEventListener("change", () => this.add((part, position) => scaled(part, position, Number(this.factor.value))));
    this.row = new WeightBars(node("div", "weighing", parent), (from, to) => this.moveWeight(from, to));
    this.weighing = node("div", "acts weighing", parent);
    const weigh = node("label", "setting", this.weighing);
    this.weighLabel = node("span", "", weigh);
    this.weight = Object.assign(node("input", "", weigh), { type: "range", min: "0", max: "1", step: "0.01" });
    this.weightShown = node("output", "", weigh);
    this.weight.addEventListener("input", () => this.showDials());
    const keep = node("label", "", this.weighing);
    this.renormalised = Object.assign(node("input", "", keep), { type: "checkbox", checked: true });
    keep.append(" the others share the rest");
    this.weight.addEventListener("change", () => this.weigh());
    this.renormalised.addEventListener("change", () => this.weigh());
    this.rules = node("div", "acts rules", parent);
    this.inForce = node("ul", "in-force", parent);
    attribute(this.inForce, "aria-label", "Changes of what is looked at");
    this.toggle(false);
  }

  toggle(isOpen) {
    const isOther = this.root.hidden === isOpen;
    this.root.hidden = !isOpen;
    attribute(this.opener, "aria-expanded", String(isOpen));
    if (isOther) this.onToggle?.();
  }

  get isOpen() {
    return !this.root.hidden;
  }

  /** Open it, and put the keyboard into it. */
  open() {
    this.toggle(true);
    /** @type {HTMLElement | null} */
    const first = this.root.querySelector("select, button");
    first?.focus();
  }

  /**
   * parts: what can be changed, [{ title, point, head }]; positions: [{ title, position }], or none; rules: [{ title, code }];
   * cell: a weight, { title, point, head, query, key, weight, row }, or null, row: of its query, as `WeightBars.show` takes it,
   * and `begin`, the position of the first key; done: all changes that are on, [{ code, words }].
   */
  show({ parts, positions = [], rules = [], cell = null, done = [] }) {
    this.offered = { parts, positions, rules, cell, done };
    this.opener.hidden = !this.change || !(parts.length || rules.length);
    if (this.opener.hidden) this.toggle(false);
    offer(this.part, parts.map(({ title }, at) => [String(at), title]));
    offer(this.where, [[EVERYWHERE, "At every position"], ...positions.map(({ title, position }) => [String(position), title])]);
    this.part.parentElement.hidden = !parts.length;
    this.where.parentElement.hidden = !positions.length;
    for (const [selector, isThere] of Object.entries({ ".acts:not(.rules, .weighing)": parts.length > 0, ".weighing": Boolean(cell) })) {
      /** @type {NodeListOf<HTMLElement>} */
      const elements = this.root.querySelectorAll(selector);
      for (const element of elements) element.hidden = !isThere;
    }
    if (cell) {
      put(this.weighLabel, `${cell.title} `);
      this.row.show(cell.row);
    }
    const codes = new Set(done.map(({ code }) => code));
    list(this.rules, rules, ({ title, code }) => {
      const label = node("label", "");
      const input = Object.assign(node("input", "", label), { type: "checkbox", checked: codes.has(code) });
      label.append(` ${title}`);
      input.addEventListener("change", () => this.change(input.checked ? { add: [code], remove: [] } : { add: [], remove: [code] }));
      return label;
    });
    // A box that was just ticked stays so until other changes are in force: numbers that arrive in between draw it, too.
    if (done !== this.doneShown) this.rules.querySelectorAll("input").forEach((input, at) => (input.checked = codes.has(rules[at].code)));
    this.doneShown = done;
    this.rules.hidden = !rules.length;
    this.showDone();
    this.settle();
  }

  // The changes of what is looked at, each to be taken back.
  showDone() {
    const { parts, done } = this.offered;
    const isOf = ({ code }, { point, head }) => {
      const { values } = parsed(code);
      const isAtPoint = values.point === point || (head !== null && values.point === point.replace("hook_z", "hook_pattern"));
      return isAtPoint && (head === null || values.head === head);
    };
    const own = done.filter((change) => parts.some((part) => isOf(change, part)));
    listChanges(this.inForce, own, this.change);
    this.inForce.hidden = !own.length;
  }

  // Update the controls, except the one in use.
  settle() {
    const { parts, cell, done } = this.offered;
    const part = parts[Number(this.part.value)];
    const isHeld = (element) => element.getRootNode().activeElement === element;
    const own = part && withoutDials(scaled(part, this.position, 0));
    const inForce = done.find(({ code }) => own && withoutDials(code) === own);
    if (!isHeld(this.factor)) this.factor.value = String(inForce ? parsed(inForce.code).values.factor : 1);
    if (cell && !isHeld(this.weight)) this.weight.value = String(cell.weight);
    this.showDials();
  }

  showDials() {
    put(this.factorShown, `× ${plainNumber(Number(this.factor.value), 3)}`);
    put(this.weightShown, plainNumber(Number(this.weight.value), 3));
  }

  get position() {
    return this.where.value === EVERYWHERE ? null : Number(this.where.value);
  }

  add(codeFor) {
    const part = this.offered.parts[Number(this.part.value)];
    if (part) this.change({ add: [codeFor(part, this.position)], remove: [] });
  }

  weigh() {
    const { cell } = this.offered;
    if (cell) this.change({ add: [this.weightCode(cell.key, Number(this.weight.value))], remove: [] });
  }

  /** All of a key's weight is put on another key: that has both then. from, to: indices in the row that is shown. */
  moveWeight(from, to) {
    const { weights, begin } = this.offered.cell.row;
    const both = Number(Math.min(1, weights[from] + weights[to]).toPrecision(4));
    this.change({ add: [this.weightCode(begin + from, 0), this.weightCode(begin + to, both)], remove: [] });
  }

  weightCode(key, weight) {
    const { point, head, query } = this.offered.cell;
    return codeOf("weigh", { point, head, query, key, weight, renormalised: this.renormalised.checked });
  }

}

/** Show changes, each with a button that takes it back. @param {HTMLElement} parent @param {Described[]} changes @param {(wish: Wish) => void} change */
function listChanges(parent, changes, change) {
  list(parent, changes, ({ code, words }) => {
    const item = node("li", "");
    item.append(words);
    const back = button(item, "Take back", () => change({ add: [], remove: [code] }));
    attribute(back, "aria-label", `Take back: ${words}`);
    return item;
  });
}

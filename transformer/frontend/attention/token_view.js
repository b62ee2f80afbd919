// Shows one token's attention over the text, as lines and as coloured tokens: what it attends to, or what attends to it.
// Pointing at a token shows its own; a click selects it.

import { attribute, node, property, put, untranslated } from "../dom.js";
import { percent } from "../number_format.js";
import { followPointer } from "../pointing.js";
import { AttentionLines } from "./attention_lines.js";

export const DIRECTIONS = { from: "What it looks at", to: "Who looks at it" };
const NAMED = 3; // tokens in the sentence
const WORD = 3; // characters from which tokens are set like words

export class TokenView {
  /** choose: called with the { query } or { key } of a click; point: with the cell under the pointer, or null. */
  constructor(parent, tip, { choose, point }) {
    this.parent = parent;
    this.tip = tip;
    this.choose = choose;
    this.point = point;
    this.strips = {};
    this.lines = new AttentionLines(parent);
    document.fonts.ready.then(() => this.draw()); // tokens may be wider in another font
  }

  /** Show new texts: one that attends to itself, or two. */
  begin(pass) {
    const two = pass.kind === "cross";
    const strips = two ? { queries: "The text", keys: "The source" } : { queries: "" };
    this.strips = {};
    this.parent.replaceChildren();
    attribute(this.parent, "data-words", String(pass.labels.queries.some((label) => label.length > WORD)));
    for (const [which, title] of Object.entries(strips)) {
      if (title) put(node("p", "note", this.parent), title);
      const strip = untranslated(node("p", "strip", this.parent));
      attribute(strip, "role", "listbox");
      attribute(strip, "aria-label", title || "The text");
      attribute(strip, "aria-orientation", "horizontal");
      const tokens = pass.labels[which].map((label, at) => this.token(strip, which, label, at));
      this.strips[which] = tokens;
      strip.addEventListener("keydown", (event) => this.onKey(event, which));
      followPointer(strip, (event) => this.pointAt(which, event ? tokens.indexOf(event.target.closest(".token")) : -1), "pointerover");
    }
    this.shown = null;
    this.lines.refresh();
  }

  get isSingle() {
    return Object.keys(this.strips).length === 1;
  }

  token(strip, which, label, at) {
    const made = node("span", "token", strip);
    put(made, label);
    attribute(made, "role", "option");
    made.tabIndex = -1;
    made.addEventListener("click", () => this.pick(which, at));
    made.addEventListener("focus", () => this.pointAt(which, at));
    made.addEventListener("blur", () => this.pointAt(which, -1));
    return made;
  }

  /** Describe a token's weights; −1 for none. */
  pointAt(which, at) {
    if (at < 0) {
      this.tip.hide();
      this.point(null);
      return;
    }
    const made = this.strips[which][at];
    const lines = this.describe(which, at);
    attribute(made, "aria-label", lines.join(", ")); // only now: labelling every token would cost a frame
    this.tip.show(made, lines);
    this.point(this.cellOf(which, at));
  }

  /**
   * at: { layer, head, row, column }; weights: (query, key), or null until they arrive; direction: as in `DIRECTIONS`.
   * Returns a sentence.
   */
  show(pass, at, weights, direction) {
    const from = direction === "from";
    const [chosen, pickedToken, other] = from ? ["queries", at.row, "keys"] : ["keys", at.column, "queries"];
    this.shown = { pass, layer: at.layer, weights, from, pickedToken, chosen, other };
    this.drawn = null;
    this.preview(null);
    for (const [which, tokens] of Object.entries(this.strips)) {
      const picked = which === chosen || this.isSingle;
      tokens.forEach((token, position) => {
        attribute(token, "aria-selected", String(picked && position === pickedToken));
        token.tabIndex = position === Math.min(pickedToken, tokens.length - 1) ? 0 : -1;
      });
    }
    if (!weights) return "The weights of this head are on their way.";
    const ablated = pass.changed.isAblated(pass.modules[at.layer], at.head) ? " This head is ablated: its output is set to zero." : "";
    return `${this.sentence(pass, this.given(pickedToken), from, pickedToken)}${ablated}`;
  }

  /** Draw the weights of a cell's token, or for null of the selected one. */
  preview(cell) {
    if (!this.shown) return;
    const { from, pickedToken, chosen, other } = this.shown;
    const at = cell ? (from ? cell.row : cell.column) : pickedToken;
    if (this.drawn === at) return;
    this.drawn = at;
    const given = this.given(at);
    const [tokens, others] = [chosen, other].map((which) => this.strips[which] ?? this.strips.queries);
    this.lines.show(tokens[at], given.map((weight, position) => ({ token: others[position], weight: weight ?? 0 })));
    for (const all of new Set([tokens, others])) all.forEach((token, position) => wash(token, all === others ? given[position] : null));
  }

  /** The weights that a token gives or gets; null for a token that can't. */
  given(at) {
    const { pass, layer, weights, from } = this.shown;
    return Array.from({ length: from ? pass.keys : pass.queries }, (_, position) => {
      const [row, column] = from ? [at, position] : [position, at];
      return pass.visible(layer, row, column) ? weights?.[row * pass.keys + column] ?? null : null;
    });
  }

  /** The cell of a token: its row and the heaviest key, or its column and the heaviest query; null on the other side. */
  cellOf(which, at) {
    if (!this.shown?.weights || (!this.isSingle && which !== this.shown.chosen)) return null;
    const given = this.given(at).map((weight) => weight ?? -1);
    const most = given.indexOf(Math.max(...given));
    return this.shown.from ? { row: at, column: most } : { row: most, column: at };
  }

  sentence(pass, given, from, pickedToken) {
    const ranked = given.map((weight, position) => ({ weight, position })).filter(({ weight }) => weight !== null)
      .sort((one, two) => two.weight - one.weight).slice(0, NAMED).filter(({ weight }) => weight >= 0.005);
    const other = from ? "keys" : "queries";
    const named = ranked.map(({ weight, position }) => `${nameOf(pass, other, position)} (${percent(weight)})`);
    const list = named.length ? named.join(", ") : "nothing in particular";
    if (!from) return `who looks at ${nameOf(pass, "keys", pickedToken)}: ${list}.`;
    const next = pass.next?.[pickedToken];
    return `${nameOf(pass, "queries", pickedToken)} looks at ${list}${next ? `, to choose “${next}”` : ""}.`;
  }

  describe(which, position) {
    if (!this.shown) return [];
    const { pass, from, pickedToken, chosen, other } = this.shown;
    const lines = [pass.token(which, position)];
    const weight = which === other || this.isSingle ? this.given(pickedToken)[position] : null;
    if (weight !== null) lines.push(`${from ? "gets" : "gives"} ${percent(weight)} of the weight ${from ? "from" : "of its row to"} ${pass.token(chosen, pickedToken)}`);
    return lines;
  }

  // In a single text, a token is selected for the side of the direction.
  pick(which, at) {
    const side = this.isSingle ? this.shown.chosen : which;
    this.choose(side === "queries" ? { query: at, key: null } : { key: at });
  }

  onKey(event, which) {
    const tokens = this.strips[which];
    const here = tokens.indexOf(event.target);
    if (here < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.pick(which, here);
    const target = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: tokens.length - 1, Enter: here, " ": here }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    tokens[Math.min(Math.max(target, 0), tokens.length - 1)].focus();
  }

  /** Redraw: the page has another size. */
  draw() {
    if (!this.shown) return;
    this.lines.refresh();
    const at = this.drawn;
    this.drawn = null;
    this.preview(this.shown.from ? { row: at, column: 0 } : { row: 0, column: at });
  }
}

/** A token, with its position if it occurs several times. */
function nameOf(pass, which, position) {
  const labels = pass.labels[which];
  const label = labels[position];
  return labels.indexOf(label) === labels.lastIndexOf(label) ? `“${label}”` : pass.token(which, position);
}

function wash(token, weight) {
  property(token, "--weight", weight === null ? "" : weight.toFixed(4));
}

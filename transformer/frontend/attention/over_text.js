// One token's view over the text: what it looked at, or who looked at it, as tints on one scale from 0 to 1.

import { SEQUENTIAL, colourAt } from "../colours.js";
import { attribute, node, put } from "../dom.js";
import { percent } from "../numbers.js";

export const DIRECTIONS = { from: "What it looked at", to: "Who looked at it" };
export const SHARES = { head: "This head", layer: "Mean of the layer" };
const NAMED = 3; // tokens that the sentence names

export class OverText {
  /** choose: called with { query } or { key } when a token is picked. */
  constructor(parent, tip, choose) {
    this.parent = parent;
    this.tip = tip;
    this.choose = choose;
    this.strips = {};
  }

  /** New texts: one that looks at itself, or two. */
  begin(pass) {
    const two = pass.kind === "cross";
    const strips = two ? { queries: "The text", keys: "The source" } : { queries: "" };
    this.strips = {};
    this.parent.replaceChildren();
    for (const [which, title] of Object.entries(strips)) {
      if (title) put(node("p", "note", this.parent), title);
      const strip = node("p", "strip", this.parent);
      attribute(strip, "role", "listbox");
      attribute(strip, "aria-label", title || "The text");
      attribute(strip, "aria-orientation", "horizontal");
      const tokens = pass.labels[which].map((label, at) => this.token(strip, which, label, at));
      this.strips[which] = tokens;
      strip.addEventListener("keydown", (event) => this.onKey(event, which));
    }
  }

  token(strip, which, label, at) {
    const made = node("span", "token", strip);
    put(made, label);
    attribute(made, "role", "option");
    made.tabIndex = -1;
    made.addEventListener("click", () => this.pick(which, at));
    for (const kind of ["pointerenter", "focus"]) {
      made.addEventListener(kind, () => {
        const lines = this.describe(which, at);
        attribute(made, "aria-label", lines.join(", ")); // here, as doing it for every token would cost a frame
        this.tip.show(made, lines);
      });
    }
    for (const kind of ["pointerleave", "blur"]) made.addEventListener(kind, () => this.tip.hide());
    return made;
  }

  /**
   * at: { layer, row, column }; weights: (query, key) or null while they are on their way; direction: as in `DIRECTIONS`;
   * whose: "layer 1, head 2". Returns a sentence.
   */
  show(pass, at, weights, direction, whose) {
    const { keys, queries } = pass;
    const from = direction === "from";
    const [chosen, asked, other] = from ? ["queries", at.row, "keys"] : ["keys", at.column, "queries"];
    const count = from ? keys : queries;
    const given = Array.from({ length: count }, (_, place) => {
      const [row, column] = from ? [at.row, place] : [place, at.column];
      return pass.visible(at.layer, row, column) ? weights?.[row * keys + column] ?? null : null;
    });
    this.shown = { pass, given, other, asked, chosen };
    for (const [which, tokens] of Object.entries(this.strips)) {
      const tinted = which === other || Object.keys(this.strips).length === 1;
      const picked = which === chosen || Object.keys(this.strips).length === 1;
      tokens.forEach((token, place) => {
        tint(token, tinted ? given[place] : null);
        attribute(token, "aria-selected", String(picked && place === asked));
        token.tabIndex = place === Math.min(asked, tokens.length - 1) ? 0 : -1;
      });
    }
    return weights ? this.sentence(pass, given, from, asked, whose) : "The weights of this layer are on their way.";
  }

  sentence(pass, given, from, asked, whose) {
    const ranked = given.map((weight, place) => ({ weight, place })).filter(({ weight }) => weight !== null)
      .sort((one, two) => two.weight - one.weight).slice(0, NAMED).filter(({ weight }) => weight >= 0.005);
    const other = from ? "keys" : "queries";
    const named = ranked.map(({ weight, place }) => `${pass.token(other, place)} (${percent(weight)})`);
    const list = named.length ? named.join(", ") : "nothing in particular";
    if (!from) return `Who looked at ${pass.token("keys", asked)} in ${whose}: ${list}.`;
    const next = pass.next?.[asked];
    return `${pass.token("queries", asked)} looked, in ${whose}, at ${list}${next ? `, to choose “${next}”` : ""}.`;
  }

  describe(which, place) {
    const { pass, given, other } = this.shown ?? {};
    if (!pass) return [];
    const lines = [pass.token(which, place)];
    if ((which === other || Object.keys(this.strips).length === 1) && given[place] != null) lines.push(`weight ${percent(given[place])}`);
    return lines;
  }

  // Where there is one text, a token is picked for the side that is asked about.
  pick(which, at) {
    const single = Object.keys(this.strips).length === 1;
    const side = single ? this.shown.chosen : which;
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
}

function tint(token, weight) {
  if (weight === null) {
    token.style.background = token.style.color = "";
    return;
  }
  const [red, green, blue] = colourAt(SEQUENTIAL, weight);
  token.style.background = `rgb(${red} ${green} ${blue})`;
  token.style.color = 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#000" : "#fff";
}

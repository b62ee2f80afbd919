// Shows a token's attention in words, and as one bar from 0 to 1 for each earlier token.
import { attribute, node, property, put } from "../dom.js";
import { percent } from "../number_format.js";
import { nameOf } from "./token_descriptions.js";

export const COLUMNS = 64;

export class AttentionBars {
  /** @type {HTMLElement} */ root;
  /** @type {HTMLElement} */ largest;

  constructor({ columns, largest }) {
    Object.assign(this, { root: columns, largest });
    this.columns = Array.from({ length: COLUMNS }, () => {
      const column = node("span", "column", columns);
      return { column, bar: node("i", "", column), label: node("b", "", column) };
    });
  }

  /** count: tokens seen; look: as `lookOf` gives it; where: "in layer 2, head 3"; placeholder: shown while nothing is known; given: shown instead; more: added at the end. */
  update(generated, count, look, where, placeholder, given = undefined, more = "") {
    // Keys end at the query or, in cross-attention, at the end of the source.
    const last = look ? look.start + look.weights.length - 1 : count - 1;
    // From right to left, so that the oldest columns wrap out of sight where there is no room. A token keeps its column as the
    // text goes on: only columns that change are laid out anew.
    for (let back = 0; back < COLUMNS; back++) {
      const index = last - back;
      const { column, bar, label } = this.columns[(index + COLUMNS) % COLUMNS];
      if (column.hidden !== index < 0) column.hidden = index < 0;
      if (column.hidden) continue;
      attribute(column, "data-index", String(index));
      property(column, "order", String(-index));
      column.classList.toggle("query", look?.query === index);
      property(bar, "background-size", `100% ${look ? (100 * (look.weight(index) ?? 0)).toFixed(1) : 0}%`);
      put(label, generated.at(index).label);
    }
    const named = (index) => `${nameOf(generated, index)} “${generated.at(index).label}”`;
    const summary = look ? `${named(look.query)} looks most at ${named(look.top)}, ${percent(look.largest)}` : placeholder;
    put(this.largest, where ? `${where}: ${given ?? summary}${more}` : summary);
    this.root.setAttribute("aria-label", `Attention weights as bars, ${summary}`);
  }
}

// Where the newest token looked: in words, and as a bar a token from 0 to 1, the latest on the right.
import { attribute, node, property, put } from "../dom.js";
import { chance, nameOf } from "./text.js";

export const COLUMNS = 64;

export class Picture {
  /** @type {HTMLElement} */ root;
  /** @type {HTMLElement} */ looker;
  /** @type {HTMLElement} */ largest;

  constructor({ columns, looker, largest }) {
    Object.assign(this, { root: columns, looker, largest });
    this.columns = Array.from({ length: COLUMNS }, () => {
      const column = node("span", "column", columns);
      return { column, bar: node("i", "", column), label: node("b", "", column) };
    });
  }

  /** count: tokens seen; look: as `lookOf` gives it; where: "layer 2, head 3"; hope: what is said while nothing is known. */
  update(story, count, look, where, hope) {
    // Keys end where the query stands, or, in cross-attention, where the source ends.
    const last = look ? look.start + look.weights.length - 1 : count - 1;
    // From right to left: the columns that find no room are the oldest, and wrap out of sight. A token keeps its column as the
    // text goes on, so that only those that change hands are laid out anew.
    for (let back = 0; back < COLUMNS; back++) {
      const index = last - back;
      const { column, bar, label } = this.columns[(index + COLUMNS) % COLUMNS];
      if (column.hidden !== index < 0) column.hidden = index < 0;
      if (column.hidden) continue;
      attribute(column, "data-index", String(index));
      property(column, "order", String(-index));
      column.classList.toggle("query", look?.query === index);
      property(bar, "background-size", `100% ${look ? (100 * (look.weight(index) ?? 0)).toFixed(1) : 0}%`);
      put(label, story.at(index).label);
    }
    put(this.looker, look ? `Where ${nameOf(story, look.query)} “${story.at(look.query).label}” looked` : "Where it looked");
    const summary = look ? `most at ${nameOf(story, look.top)} “${story.at(look.top).label}”, ${chance(look.largest)}` : hope;
    put(this.largest, where ? `${where}: ${summary}` : summary);
    this.root.setAttribute("aria-label", `Attention weights as bars, ${summary}`);
  }
}

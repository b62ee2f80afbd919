// Where the newest token looked: a bar a token, the latest on the right.
import { node, property, put } from "../dom.js";
import { chance, nameOf } from "./text.js";

export const COLUMNS = 64;

export class Picture {
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
    this.turnTo(last);
    // From right to left: the columns that find no room are the oldest, and wrap out of sight.
    this.columns.forEach(({ column, bar, label }, back) => {
      const index = last - back;
      if (column.hidden !== index < 0) column.hidden = index < 0;
      if (column.hidden) return;
      column.dataset.index = index;
      column.classList.toggle("query", look?.query === index);
      property(bar, "background-size", `100% ${look ? ((100 * (look.weight(index) ?? 0)) / look.largest).toFixed(1) : 0}%`);
      put(label, story.at(index).label);
    });
    put(this.looker, look ? `Where ${nameOf(story, look.query)} “${story.at(look.query).label}” looked` : "Where it looked");
    const summary = look ? `most at ${nameOf(story, look.top)} “${story.at(look.top).label}”, ${chance(look.largest)}` : hope;
    put(this.largest, where ? `${where}: ${summary}` : summary);
    this.root.setAttribute("aria-label", `Attention weights as bars, ${summary}`);
  }

  /** Where the text has gone on, a token's column stays its own, and those on the left become the newest: only they are laid out anew. */
  turnTo(last) {
    const on = last - this.last;
    this.last = last;
    if (!(on > 0 && on < COLUMNS)) return;
    const oldest = this.columns.splice(-on);
    this.columns.unshift(...oldest);
    this.root.prepend(...oldest.map(({ column }) => column));
  }
}

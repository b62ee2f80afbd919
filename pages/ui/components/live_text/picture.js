// Where the newest token looked: a bar a token, the latest on the right.
import { node, property, put } from "../../../../transformer/instrument/dom.js";
import { percent } from "./text.js";

const COLUMNS = 64;

export class Picture {
  constructor({ columns, looker, largest }) {
    Object.assign(this, { root: columns, looker, largest });
    this.columns = Array.from({ length: COLUMNS }, () => {
      const column = node("span", "column", columns);
      return { column, bar: node("i", "", column), label: node("b", "", column) };
    });
  }

  update(text) {
    const { query, weights, weights_start: start, where } = text.data;
    const looks = weights?.length > 0 && query != null && query < text.length;
    // Keys end where the query stands, or, in cross-attention, where the source ends.
    const last = looks ? start + weights.length - 1 : text.length - 1;
    // From right to left: the columns that find no room are the oldest, and wrap out of sight.
    this.columns.forEach(({ column, bar, label }, back) => {
      const index = last - back;
      column.hidden = index < 0;
      if (column.hidden) return;
      column.dataset.index = index;
      column.classList.toggle("query", looks && index === query);
      property(bar, "--weight", text.largest ? ((text.weight(index) ?? 0) / text.largest).toFixed(3) : "0");
      put(label, text.token(index).label);
    });
    put(this.looker, looks ? `Where token ${query} “${text.token(query).label}” looked` : "Attention");
    const top = looks ? start + weights.indexOf(text.largest) : null;
    const summary = looks ? `most at token ${top} “${text.token(top).label}”, ${percent(text.largest)}` : "nothing to show";
    put(this.largest, `${where}: ${summary}`);
    this.root.setAttribute("aria-label", `Attention weights as bars, ${summary}`);
  }
}

// What a head does, measured on the text: a sentence, and a bar for each measure.

import { node, property, put } from "../dom.js";
import { percent } from "../numbers.js";
import { inWords } from "./words.js";

export class Measures {
  /** @param {Record<string, HTMLElement>} parts of the instrument's markup: `sentence` and `measures` */
  constructor({ sentence, measures }) {
    this.sentence = sentence;
    this.list = measures;
    this.rows = [];
  }

  /** found: as `Pass.measures` has them. */
  show(found) {
    put(this.sentence, inWords(found));
    while (this.rows.length < found.length) this.rows.push(makeRow(this.list));
    this.rows.forEach(({ item, title, bar, value }, at) => {
      item.hidden = at >= found.length;
      if (item.hidden) return;
      put(title, found[at].title);
      property(bar, "--share", found[at].value.toFixed(4));
      put(value, percent(found[at].value));
    });
  }
}

function makeRow(list) {
  const item = node("li", "", list);
  return { item, title: node("span", "name", item), bar: node("i", "meter", item), value: node("span", "value", item) };
}

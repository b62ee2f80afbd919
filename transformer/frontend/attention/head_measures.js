// Describes what a head does on average over the text: a sentence, and a bar with an explanation for each measure.

import { node, property, put } from "../dom.js";
import { percent } from "../number_format.js";
import { headInWords } from "./attention_description.js";

export class HeadMeasures {
  /** @param {Record<string, HTMLElement>} parts of the instrument's markup: `sentence` and `measures` */
  constructor({ sentence, measures }) {
    this.sentence = sentence;
    this.list = measures;
    this.rows = [];
  }

  /** found: from `Pass.measures`. */
  show(measures) {
    put(this.sentence, headInWords(measures));
    while (this.rows.length < measures.length) this.rows.push(makeRow(this.list));
    this.rows.forEach(({ item, title, bar, value, meaning }, at) => {
      item.hidden = at >= measures.length;
      if (item.hidden) return;
      put(title, measures[at].title);
      property(bar, "--share", measures[at].value.toFixed(4));
      put(value, percent(measures[at].value));
      put(meaning, measures[at].sentence);
    });
  }
}

/** All heads of a pass, the largest in a measure first, each with its value as a caption. */
export function ranked(pass, name) {
  const heads = Array.from({ length: pass.layers * pass.heads }, (_, at) => {
    const [layer, head] = [Math.floor(at / pass.heads), at % pass.heads];
    const value = pass.measures(layer, head).find((measure) => measure.name === name)?.value;
    return { layer, head, value, caption: value === undefined ? "–" : value.toFixed(2) };
  });
  return heads.sort((one, other) => (other.value ?? -1) - (one.value ?? -1));
}

function makeRow(list) {
  const item = node("li", "", list);
  return { item, title: node("span", "name", item), bar: node("i", "meter", item), value: node("span", "value", item), meaning: node("span", "note", item) };
}

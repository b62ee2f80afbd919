// Shows the likeliest tokens after one query, or in its place, with a mask and with another or none.
import { node, put } from "../dom.js";
import { percent } from "../number_format.js";
import { showTopTokens } from "../top_tokens.js";

export class Predictions {
  constructor(parent) {
    this.parent = parent;
    this.title = node("h2", "", parent);
    this.sees = node("p", "sees", parent);
    this.lists = [0, 1].map(() => {
      const name = node("h3", "", parent);
      return { name, list: node("ol", "likeliest", parent) };
    });
    this.words = node("p", "words", parent);
  }

  /** The first: the mask. Of the second, heading: what is predicted; names: of the two readings; rows: by query, what each predicts; right: which of them is right. */
  show({ labels, offset }, { heading, names, rows, right, sees, words }, row) {
    put(this.title, `${heading} “${labels[row]}”, position ${offset + row}`);
    put(this.sees, `${sees[row]} Click any other row.`);
    this.lists.forEach(({ name, list }, which) => {
      put(name, names[which]);
      showTopTokens(list, rows[row][which], right[row][which]);
    });
    put(this.words, row === labels.length - 1 ? words : "");
  }

  /** What is likeliest, for those who hear it. */
  inWords({ names, rows }, row) {
    return rows[row].map(([[label, probability]], which) => `${names[which].toLowerCase()}: ${label}, ${percent(probability)}`).join("; ");
  }
}

// Compares the predictions after one token of the text with and without a mask.
import { node, put } from "../../../../transformer/frontend/dom.js";
import { chance } from "../../../../transformer/frontend/writing/token_descriptions.js";
import { showLikeliest } from "../../../../transformer/frontend/likeliest.js";

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

  /** The first: the mask. Of the second, names: of the two readings; rows: by query, what each predicts; following: what really came next. */
  show({ labels, offset }, { names, rows, following, sees, words }, row) {
    put(this.title, `What comes after “${labels[row]}”, position ${offset + row}`);
    put(this.sees, `${sees[row]} Click any other row.`);
    this.lists.forEach(({ name, list }, which) => {
      put(name, names[which]);
      showLikeliest(list, rows[row][which], following[row]);
    });
    put(this.words, row === labels.length - 1 ? words : "");
  }

  /** What is likeliest after a query, for those who hear it. */
  said({ names, rows }, row) {
    return rows[row].map(([[label, probability]], which) => `${names[which].toLowerCase()} ${label}, ${chance(probability)}`).join("; ");
  }
}

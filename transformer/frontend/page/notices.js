// What is said between the prompt and the picture: what went wrong, and what is to be known until it is dismissed; with buttons for
// the words that were likely meant.

import { sentenceOf } from "../api_error.js";
import { attribute, button, list, node, put } from "../dom.js";
import { corrected } from "./grammar.js";
import { closestTo } from "./spelling.js";
import { UnreadableText, sentenceIn } from "./text_reading.js";
/** @import { Slip } from "./grammar.js" */
/** @import { Model } from "./answers.js" */
/** @import { Notice, ReadText } from "./text_reading.js" */

export class Notices {
  /** @type {string[]} what the host says */ hosted = [];
  /** @type {Notice[]} what is said of the view */ said = [];
  /** @type {Set<string>} sentences that were read, as long as they would be shown */ dismissed = new Set();

  /** @param {HTMLElement} parent @param {{ typed: () => string, retype: (text: string) => void, dismissed: () => void }} host typed: what the prompt's field has */
  constructor(parent, host) {
    this.host = host;
    this.problem = node("div", "problem", parent);
    attribute(this.problem, "role", "alert");
    this.problem.hidden = true;
    this.root = node("div", "shell-notices", parent);
    this.sentences = node("div", "", this.root);
    attribute(this.sentences, "role", "status");
    button(this.root, "OK", () => this.dismiss());
  }

  /** @param {any} error null where nothing is wrong @param {Model | null} [model] which was to read a text */
  showProblem(error, model = null) {
    this.problem.replaceChildren();
    this.problem.hidden = !error;
    if (!error) return;
    put(node("p", "", this.problem), sentenceOf(error));
    const { words = [], known = null, unknown = [] } = error instanceof UnreadableText ? error.read : /** @type {Partial<ReadText>} */ ({});
    if (words.length) put(node("p", "", this.problem), `It knows these words: ${words.map((word) => `“${word}”`).join(", ")}.`);
    const all = unknown.length ? Object.values(model.about.kinds).map(([label]) => label) : [];
    const closest = new Map(unknown.map(({ text }) => [text, closestTo(text, all)]));
    this.offerWords(this.problem, [...closest].flatMap(([typed, close]) => (close ? [{ typed, known: close }] : [])));
    if (known !== null) button(this.problem, "Remove what is unknown", () => this.host.retype(known), { className: "act" });
  }

  /** Say these, below what the host says. @param {Notice[]} said */
  show(said) {
    this.said = said;
    const all = new Map([...this.hosted, ...said].map((notice) => [sentenceIn(notice), notice]));
    this.dismissed = new Set([...all.keys()].filter((sentence) => this.dismissed.has(sentence)));
    for (const sentence of this.dismissed) all.delete(sentence);
    list(this.sentences, [...all.values()], (notice) => {
      const line = node("p", "", null);
      put(node("span", "", line), sentenceIn(notice));
      if (typeof notice !== "string") this.offerWords(line, notice.slips);
      return line;
    });
    this.root.hidden = !all.size;
  }

  dismiss() {
    this.dismissed = new Set([...this.hosted, ...this.said].map(sentenceIn));
    this.show(this.said);
    this.host.dismissed();
  }

  /** @param {HTMLElement} parent @param {Slip[]} slips */
  offerWords(parent, slips) {
    for (const slip of slips) {
      const words = `Write “${slip.known}” instead of “${slip.typed}”`;
      button(parent, `${slip.known}?`, () => this.host.retype(corrected(this.host.typed(), slip)), { words, className: "act" });
    }
  }
}

// The words that may come next in a prompt, below it while it is edited: arrow keys and Enter choose one, or a press does.

import { attribute, node, put, untranslated } from "../dom.js";
/** @import { Grammar, Next } from "./grammar.js" */

const SHOWN = 8; // words, before all are asked for
const MORE = "…";
const MOVES = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

export class NextWords {
  /** @type {Grammar | null} */ grammar = null; // of what is typed
  /** @type {Next} */ next;
  at = -1; // which word the keys have come to
  isWhole = false; // whether all words are shown
  isClosed = false; // until something is typed again

  /** @param {HTMLElement} parent @param {HTMLTextAreaElement} field which dispatches `input` once a word was added to it */
  constructor(parent, field) {
    this.field = field;
    this.root = node("div", "shell-next", parent);
    this.root.hidden = true;
    this.list = node("div", "", this.root);
    this.list.id = "shell-next-words";
    attribute(this.list, "role", "listbox");
    attribute(this.list, "aria-label", "Words that may come next");
    attribute(field, "aria-autocomplete", "list");
    attribute(field, "aria-controls", this.list.id);
    this.hint = node("p", "", this.root);
    attribute(this.hint, "role", "status");
    this.root.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
    field.addEventListener("input", () => this.show(true));
    for (const kind of ["focus", "click", "keyup"]) field.addEventListener(kind, () => this.show());
    field.addEventListener("blur", () => this.hide());
  }

  hide() {
    this.root.hidden = true;
    this.shownFor = null;
    this.isClosed = false;
    this.moveTo(-1);
  }

  /** Offer what may come next where the caret is. @param {boolean} [isTyped] whether something was typed just now */
  show(isTyped = false) {
    const { grammar, field: { value, selectionStart } } = this;
    if (isTyped) this.isClosed = false;
    const before = value.slice(0, selectionStart);
    if (!grammar || this.isClosed || this.shownFor === before) return;
    this.shownFor = before;
    this.isWhole = false;
    this.next = grammar.next(before);
    this.draw();
  }

  draw() {
    const { words } = this.next;
    const shown = this.isWhole || words.length <= SHOWN + 1 ? words : [...words.slice(0, SHOWN), MORE];
    this.list.replaceChildren(...shown.map((word, at) => {
      const option = untranslated(node("div", "", null));
      option.id = `shell-next-${at}`;
      attribute(option, "role", "option");
      if (word === MORE) attribute(option, "aria-label", `${words.length - SHOWN} more`);
      put(option, word);
      option.addEventListener("click", () => this.choose(at));
      return option;
    }));
    put(this.hint, this.hinted());
    this.list.hidden = !shown.length;
    this.root.hidden = !shown.length && !this.hint.textContent;
    this.moveTo(-1);
  }

  hinted() {
    const { words, begun, takesNew, strange } = this.next;
    if (strange || (begun && !words.length && !takesNew)) return `The model knows no sentence with “${strange || begun}” there`;
    if (!takesNew) return "";
    const isKnown = words.some((word) => word.toLowerCase().startsWith(begun.toLowerCase()));
    return isKnown ? "or a word of your own" : `“${begun}” is a new word to the model`;
  }

  /** @param {number} at -1 for none */
  moveTo(at) {
    this.at = at;
    [...this.list.children].forEach((option, place) => attribute(option, "aria-selected", String(place === at)));
    this.list.children[at]?.scrollIntoView({ block: "nearest" });
    attribute(this.field, "aria-activedescendant", at < 0 ? "" : `shell-next-${at}`);
  }

  /** Whether a key was meant for the words. @param {KeyboardEvent} event */
  takes({ key }) {
    const { selectionStart, value } = this.field;
    if (this.root.hidden) return false;
    if (this.at < 0 && (key !== "ArrowDown" || selectionStart < value.length)) return false;
    if (key in MOVES) this.moveTo(Math.min(this.at + MOVES[key], this.list.children.length - 1));
    else if (key === "Enter") this.choose(this.at);
    else if (key === "Escape") {
      this.hide();
      this.isClosed = true;
    } else return false;
    return true;
  }

  /** @param {number} at */
  choose(at) {
    const { textContent: word } = this.list.children[at];
    if (word === MORE) {
      this.isWhole = true;
      this.draw();
      this.moveTo(at);
    } else this.write(word);
  }

  /** Put a word in the place of what was begun, and spaces around it. @param {string} word */
  write(word) {
    const { field, next: { begun } } = this;
    const { value, selectionStart: caret } = field;
    const before = value.slice(0, caret - begun.length);
    const left = /^[.?]/.test(word) ? before.trimEnd() : before && !/[\s-]$/.test(before) ? `${before} ` : before;
    const right = value.slice(caret).replace(begun ? /^[^\s.?]+/ : /^(?!)/, "");
    const space = /^[\s.?]/.test(right) ? "" : " ";
    field.value = `${left}${word}${space}${right}`;
    const at = left.length + word.length + space.length;
    field.setSelectionRange(at, at);
    field.dispatchEvent(new Event("input"));
  }
}

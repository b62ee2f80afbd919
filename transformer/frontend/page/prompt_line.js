// The prompt: one line, which grows over the page while it is edited; and examples of prompts.

import { attribute, focusedIn, isComposing, node, untranslated } from "../dom.js";
import { fitToText } from "../field_height.js";
import { LONGEST_PROMPT } from "./page_state.js";

const DRAFT = "headsup-draft"; // where the tab keeps what is typed and can't be read, beside the prompt that is shown

export class PromptLine {
  /** @type {string | null} */ text = null; // the prompt that is shown on the page

  /** @param {HTMLElement} parent @param {(text: string) => void} type told of a text that was typed, or picked from the examples */
  constructor(parent, type) {
    this.root = node("div", "shell-prompts", parent);
    const place = node("div", "shell-prompt", this.root);
    this.field = Object.assign(node("textarea", "", place), { rows: 1, spellcheck: false, maxLength: LONGEST_PROMPT });
    attribute(this.field, "aria-label", "Prompt");
    this.fit = fitToText(this.field);
    this.field.addEventListener("change", () => {
      this.store();
      type(this.field.value);
    });
    this.field.addEventListener("keydown", (event) => {
      if (isComposing(event)) return;
      if (event.key === "Escape") this.put(this.text);
      else if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      this.field.blur();
    });
    this.field.addEventListener("blur", () => (this.field.scrollTop = 0));
    this.examples = node("select", "shell-examples", this.root);
    attribute(this.examples, "aria-label", "Examples");
    this.examples.addEventListener("change", () => {
      const { value } = this.examples;
      this.examples.value = "";
      if (!value) return;
      this.put(value);
      type(value);
    });
  }

  /** The prompt is on the page; what was typed instead of it stays in the field. @param {string} text @param {string[]} examples */
  show(text, examples) {
    if (text !== this.text) {
      const isFirst = this.text === null;
      this.text = text;
      this.put((isFirst && this.stored()) || text);
    }
    this.examples.replaceChildren(new Option("Examples", ""), ...examples.map((example) => untranslated(new Option(example, example))));
    this.examples.hidden = !examples.length;
  }

  /** What was typed instead of the prompt on the page, once it isn't being edited any more; null for nothing. */
  get draft() {
    return this.field.value === this.text || focusedIn(this.field) === this.field ? null : this.field.value;
  }

  /** @param {string} text */
  put(text) {
    this.field.value = text;
    this.fit();
    this.store();
  }

  store() {
    try {
      if (this.field.value === this.text) sessionStorage.removeItem(DRAFT);
      else sessionStorage.setItem(DRAFT, JSON.stringify([this.text, this.field.value]));
    } catch {
      // A browser may refuse to store anything.
    }
  }

  /** What was typed instead of this prompt before the page was loaded anew. @returns {string | null} */
  stored() {
    try {
      const [text, draft] = JSON.parse(sessionStorage.getItem(DRAFT));
      return text === this.text ? draft : null;
    } catch {
      return null;
    }
  }
}

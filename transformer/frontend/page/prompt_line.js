// The prompt: one line, which grows over the page while it is edited; and examples of prompts.

import { store, stored } from "../browser_storage.js";
import { attribute, isComposing, node, untranslated } from "../dom.js";
import { fitToText } from "../field_height.js";
import { NextWords } from "./next_words.js";
import { LONGEST_PROMPT } from "./page_state.js";

const DRAFT = "headsup-draft"; // where the tab keeps what is typed instead of the prompt that is shown, over a reload

export class PromptLine {
  /** @type {string | null} */ text = null; // the prompt that is shown on the page
  isEdited = false; // what was typed waits for Enter, or for the field to be left

  /** @param {HTMLElement} parent @param {(text: string) => void} type told of a text that was typed, or picked from the examples */
  constructor(parent, type) {
    this.root = node("div", "shell-prompts", parent);
    const place = node("div", "shell-prompt", this.root);
    const typing = node("div", "shell-typing", place);
    this.field = Object.assign(node("textarea", "", typing), { rows: 1, spellcheck: false, maxLength: LONGEST_PROMPT });
    attribute(this.field, "aria-label", "Prompt");
    this.fit = fitToText(this.field);
    this.next = new NextWords(typing, this.field);
    this.field.addEventListener("input", () => {
      this.isEdited = true;
      this.store();
    });
    this.field.addEventListener("keydown", (event) => {
      if (isComposing(event)) return;
      if (this.next.takes(event)) {
        event.preventDefault();
        return;
      }
      if (event.key === "Escape") this.put(this.text);
      else if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      this.field.blur();
    });
    // A draft that was restored and isn't edited further has no change event.
    this.field.addEventListener("blur", () => {
      this.field.scrollTop = 0;
      if (!this.isEdited) return;
      this.isEdited = false;
      this.store();
      type(this.field.value);
    });
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
      const draft = this.text === null ? storedDraft(text) : null;
      this.text = text;
      this.put(draft ? draft.value : text);
      if (draft?.isEdited) this.editAgain();
    }
    this.examples.replaceChildren(new Option("Examples", ""), ...examples.map((example) => untranslated(new Option(example, example))));
    this.examples.hidden = !examples.length;
  }

  /** What was typed instead of the prompt on the page, and can't be read; null for nothing. */
  get draft() {
    return this.isEdited || this.field.value === this.text ? null : this.field.value;
  }

  /** @param {string} text */
  put(text) {
    this.field.value = text;
    this.isEdited = false;
    this.fit();
    this.store();
  }

  /** Wait for Enter again, as before the page was loaded anew. */
  editAgain() {
    this.isEdited = true;
    this.field.focus();
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
    this.store();
  }

  store() {
    const { text, field: { value }, isEdited } = this;
    store(DRAFT, value === text ? null : { text, value, isEdited, page: performance.timeOrigin });
  }
}

/**
 * What was typed instead of this prompt before the page was loaded anew, or its server came back. A link that was followed says itself
 * what the page is to show.
 *
 * @param {string} text
 * @returns {{ value: string, isEdited: boolean } | null}
 */
function storedDraft(text) {
  const draft = stored(DRAFT);
  const isOfLink = performance.getEntriesByType("navigation").some((entry) => /** @type {PerformanceNavigationTiming} */ (entry).type === "navigate");
  return draft?.text === text && (draft.page === performance.timeOrigin || !isOfLink) ? draft : null;
}

// The prompt: one line, which grows over the page while it is edited; and examples of prompts.

import { attribute, isComposing, node, untranslated } from "../dom.js";
import { fitToText } from "../field_height.js";

export class PromptLine {
  /** @type {object | null} */ typed = null; // what was typed last and is being read

  /**
   * @param {HTMLElement} parent
   * @param {{ type: (text: string) => void, other: (text: string) => void }} host told of a text that was typed, and of an example that was picked
   */
  constructor(parent, { type, other }) {
    this.root = node("div", "shell-prompts", parent);
    const place = node("div", "shell-prompt", this.root);
    this.field = Object.assign(node("textarea", "", place), { rows: 1, spellcheck: false });
    attribute(this.field, "aria-label", "Prompt");
    this.fit = fitToText(this.field);
    this.field.addEventListener("change", () => type(this.field.value));
    this.field.addEventListener("keydown", (event) => {
      if (isComposing(event)) return;
      if (event.key === "Escape") this.show(this.text);
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
      if (value) other(value);
    });
    this.text = "";
  }

  /** @param {string} text @param {string[]} [examples] */
  show(text, examples) {
    this.text = text;
    this.field.value = text;
    this.fit();
    if (!examples) return;
    this.examples.replaceChildren(new Option("Examples", ""), ...examples.map((example) => untranslated(new Option(example, example))));
    this.examples.hidden = !examples.length;
  }
}

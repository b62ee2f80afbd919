// The list from which a model is picked.

import { attribute, node } from "../dom.js";
/** @import { ListedModel } from "./shell.js" */

export class ModelMenu {
  /** @param {HTMLElement} parent @param {(name: string) => void} choose */
  constructor(parent, choose) {
    this.select = node("select", "shell-model", parent);
    attribute(this.select, "aria-label", "Model");
    this.select.addEventListener("change", () => choose(this.select.value));
  }

  /** @param {ListedModel[]} models */
  offer(models) {
    const { value } = this.select;
    this.select.replaceChildren();
    for (const { name, title, group } of models) {
      const section = [...this.select.querySelectorAll("optgroup")].find(({ label }) => label === group) ?? Object.assign(node("optgroup", "", this.select), { label: group });
      section.append(new Option(title, name));
    }
    this.show(value);
  }

  /** @param {string} name */
  show(name) {
    this.select.value = name;
    this.select.hidden = this.select.options.length < 2 && this.select.value === name; // a page with one model has no choice
  }
}

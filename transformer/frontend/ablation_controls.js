// Lets a visitor ablate heads, and take back what is changed in the model.

import { attribute, node, put } from "./dom.js";
import { codeOf, inWords } from "./intervention_codes.js";
import { listChanges } from "./intervention_controls.js";
/** @import { Wish } from "./changes.js" */

export class AblationControls {
  /**
   * @param {HTMLElement} parent
   * @param {{ modules: string[], heads: number }} of the attentions whose heads can be ablated
   * @param {(wish: Wish) => void} change
   */
  constructor(parent, { modules, heads }, change) {
    this.change = change;
    const codes = modules.flatMap((module) => Array.from({ length: heads }, (_, head) => codeOf("scale", { point: `${module}.hook_z`, head, factor: 0 })));
    const form = node("div", "ablating", parent);
    form.hidden = !codes.length;
    const choice = node("label", "", form);
    choice.append("Head ");
    const head = node("select", "", choice);
    attribute(head, "aria-label", "Head to ablate"); // else its options would be part of its name
    head.replaceChildren(...codes.map((code) => Object.assign(document.createElement("option"), { value: code, textContent: inWords(code).replace(/ ablated$/, "") })));
    const ablate = Object.assign(node("button", "", form), { type: "button" });
    put(ablate, "Ablate");
    ablate.addEventListener("click", () => change({ add: [head.value], remove: [] }));
    this.inForce = node("ul", "in-force", parent);
    attribute(this.inForce, "aria-label", "Changes of the model");
  }

  /** @param {{ code: string, words: string }[]} interventions what is changed */
  show(interventions) {
    listChanges(this.inForce, interventions, this.change);
  }
}

// Says that a model has no layers to change, and leads on to one with attention.

import { button, node, put } from "../dom.js";

export class NoLayers {
  /** @type {string} */ name;

  /** @param {HTMLElement} parent @param {(name: string) => void} choose another model */
  constructor(parent, choose) {
    this.root = node("p", "", parent);
    this.words = node("span", "", this.root);
    this.goOn = button(this.root, "", () => choose(this.name), { className: "act" });
    this.root.hidden = true;
  }

  /** @param {{ hasParts: boolean, able: { name: string, title: string } | null, isCausal: boolean }} about able: a model with attention */
  show({ hasParts, able, isCausal }) {
    this.root.hidden = hasParts;
    put(this.words, `This model has no layers, and so no attention and nothing to ablate: it predicts ${isCausal ? "the next token from one token alone" : "each token from itself"}. `);
    this.goOn.hidden = !able;
    this.name = able?.name;
    if (able) put(this.goOn, `Go on to ${able.title}`);
  }
}

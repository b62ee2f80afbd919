// The legend above the picture.

import { node } from "../dom.js";
import { headColour } from "./roles.js";
import { attentionsOf } from "./structure.js";

export class Legend {
  constructor(parent) {
    this.parent = parent;
  }

  /** head: whose arcs are drawn; null for the mean of all. */
  show(pass, structure, head) {
    const key = [pass.id, head].join();
    if (key === this.shown) return;
    this.shown = key;
    this.parent.style.setProperty("--curve", headColour(head ?? 0));
    this.parent.replaceChildren(...signsOf(pass, structure, head).map(([sign, words]) => {
      const item = node("span", "");
      if (sign) node("i", sign, item);
      item.append(words);
      return item;
    }));
  }
}

/** What this model's picture has: [sign or "", words]. */
function signsOf(pass, structure, head) {
  const { n_heads: heads, d_model: width } = pass.config;
  const { columns } = pass.strip(structure.stacks[0].depths[0][0]) ?? { columns: width };
  const pooled = Math.ceil(width / columns);
  return [
    ["stripes", `vector: ${pooled > 1 ? `each stripe the largest of ${pooled} numbers` : "one stripe a number"}, blue < 0 < red`],
    ["line", structure.residual ? "residual stream" : "stream, cut where a layer replaces it"],
    ...(attentionsOf(structure).length ? [["curve", `attention: thickness is weight${heads > 1 && head === null ? ", colour is head" : ""}`]] : []),
    ["share", "probability"],
    ["", "right: logit lens, each layer’s prediction"],
  ];
}

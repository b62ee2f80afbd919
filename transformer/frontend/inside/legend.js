// Draws the legend above the picture: the colours of its parts and heads.

import { node } from "../dom.js";
import { headColour } from "./role_colours.js";
import { attentionsOf } from "./structure.js";

export class Legend {
  constructor(parent) {
    this.parent = parent;
  }

  /** head: whose arcs are drawn; null for the mean of all. */
  show(pass, structure, head) {
    if (pass === this.shown?.pass && head === this.shown.head) return;
    this.shown = { pass, head };
    this.parent.replaceChildren(...signsOf(pass, structure, head).map(([sign, words, colour]) => {
      const item = node("span", "");
      const drawn = node("i", sign, item);
      if (colour) drawn.style.setProperty("--curve", colour);
      item.append(words);
      return item;
    }));
  }
}

/** What this model's picture has: [sign, words, colour of an attention]. */
function signsOf(pass, structure, head) {
  const { n_heads: heads, d_model: width } = pass.config;
  const { columns } = pass.strip(structure.stacks[0].depths[0][0]) ?? { columns: width };
  const pooled = Math.ceil(width / columns);
  return [
    ...(attentionsOf(structure).length ? attentionSigns(heads, head) : []),
    ["line", structure.residual ? "residual stream" : "stream, cut where a layer replaces it"],
    ["stripes", `vector: ${pooled > 1 ? `each stripe the largest of ${pooled} numbers` : "one stripe a number"}, blue < 0 < red`],
    ["share", "probability"],
  ];
}

/** Of the mean of all heads a sign for each head's colour: a curve has that of the head with the largest weight. */
function attentionSigns(heads, head) {
  if (heads === 1 || head !== null) return [["curve", "attention: thickness is weight", headColour(head ?? 0)]];
  const colours = Array.from({ length: heads }, (_, head) => headColour(head));
  const shown = [...new Set(colours)].map((colour) => [colour, colours.flatMap((other, at) => (other === colour ? [at] : [])).join(", ")]);
  return shown.map(([colour, words], at) => ["curve", at ? words : `attention: thickness is weight, colour is head ${words}`, colour]);
}

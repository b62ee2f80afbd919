// The weights of a head, large, and on request the steps from q · k to them, side by side. All share axes, pointer,
// selection and zoom.

import { largestAbsolute } from "../arithmetic.js";
import { attribute, node, put } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { formula } from "./attention_description.js";
/** @import { HeatmapData } from "../heatmap.js" */

export const STAGES = {
  raw: { title: "q · k", what: "how well each query fits each key" },
  scaled: { title: "÷ √d_head", what: "so that the spread doesn't grow with the head's width" },
  capped: { title: "cap", what: "cap · tanh(score ÷ cap): no score leaves ± cap" },
  biased: { title: "+ position bias", what: "" },
  masked: { title: "+ mask", what: "a hidden key's score becomes −∞" },
  weights: { title: "softmax", what: "each row's weights sum to one" },
};
const BIASES = {
  alibi: "ALiBi: − the head’s slope × how far away the key is",
  relative: "what this head has learned for how far away the key is",
};
const CARRIED = "drag a weight to another key of its row";
const UNIFORM = "This attention is uniform: it has no queries and keys to choose with.";
const NO_MASK = {
  cross: "No mask here: the whole source is there before the first word is written, so every query sees all of it. "
    + "The scores stay as they are.",
  encoder: "No mask here: the whole source is there from the start, so every token sees every other. "
    + "The scores stay as they are.",
  self: "No mask here: every token sees every other, those after it too. The scores stay as they are.",
};

const WIDEST = 72; // width of a cell of the first picture, in pixels
const AXES = { rowTitle: "query: the token that looks", columnTitle: "key: the token it looks at" };

export class Panels {
  /** events: those of a `Heatmap`; weights are carried in the first picture alone. */
  constructor(parent, { carry, ...events }) {
    this.isOpen = false;
    this.all = [...parent.querySelectorAll("figure")].map((figure) => {
      const isFirst = figure.dataset.panel === "weights";
      const stage = figure.dataset.stage ?? figure.dataset.panel;
      const [title, what, drawn, instead] = [".title", ".what", ".drawn", ".instead"].map((name) => figure.querySelector(name));
      const name = isFirst ? "Attention weights" : STAGES[stage].title;
      const heatmap = new Heatmap(drawn, name, isFirst ? { ...events, carry } : events);
      if (!isFirst) heatmap.marks.addEventListener("focus", () => events.stage(stage));
      return { stage, isFirst, figure, title, what, drawn, instead, heatmap };
    });
    this.first = this.all.find(({ isFirst }) => isFirst).heatmap;
    this.hiddenKey = node("span", "hidden-key", this.first.legend);
    put(this.hiddenKey, "hidden");
  }

  /** The visible panels; a closed drawer's aren't drawn. */
  get seen() {
    return this.all.filter(({ isFirst, figure }) => isFirst || (this.isOpen && !figure.hidden));
  }

  /**
   * steps: from `Pass.steps`; null until they arrive, and `outline` then is a preview of the weights.
   * without: rules of the model that are left out; window: the zoom; canCarry: whether weights can be carried; isOpen: whether
   * the steps are visible.
   */
  show(pass, { layer, steps, outline, without, window, canCarry, isOpen }) {
    this.isOpen = isOpen;
    const left = pass.left(layer, without);
    for (const { stage, figure } of this.all) figure.hidden = !pass.stages.includes(stage);
    this.hiddenKey.hidden = !pass.hasMask(layer, left);
    for (const panel of this.seen) {
      const { stage, isFirst } = panel;
      const { title } = STAGES[stage];
      const what = stage === "biased" ? BIASES[pass.bias.slopes ? "alibi" : "relative"] : STAGES[stage].what;
      panel.title.translate = !isFirst;
      put(panel.title, isFirst ? formula(pass, layer, left) : title);
      const isAwaited = !steps && stage !== "weights";
      put(panel.what, isAwaited ? "its numbers are on their way" : this.leftOut(stage, without) ?? (!isFirst ? what : canCarry ? CARRIED : ""));
      const instead = this.instead(pass, layer, stage, left);
      panel.drawn.hidden = instead !== "";
      panel.instead.hidden = instead === "";
      put(panel.instead, instead);
      attribute(panel.figure, "aria-busy", String(!steps));
      attribute(panel.figure, "data-carries", String(isFirst && canCarry));
      if (!instead) panel.heatmap.show(this.data(pass, panel, steps, outline), window);
    }
  }

  instead(pass, layer, stage, left) {
    if (stage === "weights") return "";
    if (pass.uniform) return stage === "raw" ? UNIFORM : "No score, so there is nothing to divide or to mask.";
    if (stage === "masked" && left.includes("mask")) return "Left out: every query sees every key, those after it too.";
    if (stage === "masked" && !pass.hasMask(layer, left)) return NO_MASK[pass.kind];
    if (stage === "biased" && left.includes("positions")) return "Left out: how far away a key is makes no difference.";
    if (stage === "scaled" && pass.undivided) return "This model doesn't divide: its scores go on as they are.";
    if (stage === "scaled" && left.includes("scale")) return "Left out: the scores go to softmax as they are.";
    return "";
  }

  leftOut(stage, without) {
    if (stage === "weights" && without.length) return "not what the model computed";
    return null;
  }

  /** @returns {HeatmapData} */
  data(pass, { stage, isFirst }, steps, outline) {
    const { labels, rowLabels, queries, keys } = pass;
    const weights = steps ? this.hiddenWeights(steps) : outline;
    const values = stage === "weights" ? weights : steps && steps[stage];
    const limit = stage === "weights" ? 1 : values && (largestAbsolute(values) || 1);
    return {
      values, rows: queries, columns: keys, rowLabels, columnLabels: labels.keys,
      kind: stage === "weights" ? "weights" : "scores", limit, ...(isFirst && { widest: WIDEST, ...AXES }),
    };
  }

  // A hidden key's weight is exactly 0, and drawn as hidden, not as small, unless it was set by hand.
  hiddenWeights({ weights, masked }) {
    const drawn = weights.slice();
    for (let at = 0; at < drawn.length; at++) if ((!masked || masked[at] === -Infinity) && drawn[at] === 0) drawn[at] = -Infinity;
    return drawn;
  }

  mark(selected, pointed) {
    for (const { heatmap, drawn } of this.seen) if (!drawn.hidden) heatmap.mark(selected, pointed);
  }

  /** The weight that a drag carries, { from, to }, or null. */
  get carrying() {
    return this.first.carrying;
  }

  /** Whether cells are too small to be hit. */
  get isCrowded() {
    return Boolean(this.first.pooled);
  }

  /** Redraw: the page has another size or other colours. */
  draw() {
    for (const { heatmap } of this.all) heatmap.refresh();
    for (const { heatmap, drawn } of this.seen) if (!drawn.hidden) heatmap.draw();
  }

  /** The first picture's distance between labels, by side, and whether cells share pixels. */
  get room() {
    return { ...this.first.steps, pooled: Boolean(this.first.pooled) };
  }

  /** The visible pictures, each with its title and its canvas: the weights, or the steps to them. */
  get pictures() {
    const drawn = this.seen.filter(({ isFirst, drawn, heatmap }) => isFirst !== this.isOpen && !drawn.hidden && heatmap.page?.width);
    return drawn.map(({ title, heatmap }) => ({ title: title.textContent, canvas: heatmap.picture }));
  }
}

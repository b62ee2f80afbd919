// Shows the causal mask of a text, and what the model predicts with it and without it: a view of the page Masks for pages without a
// server.

import { lastOf, likeliestOf, probabilityOf } from "../what_if/distributions.js";
import { Masks } from "./masks.js";
/** @import { Api, Parameters } from "../api.js" */
/** @import { ViewFrame } from "../page/view_frame.js" */
/** @import { Distribution } from "../what_if/distributions.js" */

const TOP = 5; // tokens of each prediction
const SEEN = 0.01; // a loss of probability that can be seen in bars

export class MasksView {
  /** @param {HTMLElement} root @param {ViewFrame} host */
  constructor(root, host) {
    this.host = host;
    this.masks = new Masks({ root });
  }

  /**
   * @param {unknown} _
   * @param {Record<string, any>} about requests: two, with the mask and without; tokens of the window; labels; offset of the first; kinds; context:
   * tokens that each layer sees, 0 for all
   */
  async begin(_, { requests, tokens, labels, offset, kinds, windows }) {
    this.apis?.forEach((api) => api.end());
    const apis = (this.apis = requests.map((/** @type {Parameters} */ request) => this.host.apiOf(request, { computed: () => {} })));
    const read = await Promise.all(apis.map((/** @type {Api} */ api) => api.recording("tensors", { names: ["logits"] })));
    const [masked, free] = read.map(({ tensors: { logits: { shape: [count, vocab], data } } }) =>
      Array.from({ length: count }, (_row, at) => lastOf({ metadata: {}, tensors: { logits: { shape: [1, vocab], data: data.subarray(at * vocab, (at + 1) * vocab) } } })));
    const top = (/** @type {Distribution} */ of) => likeliestOf([of, of], TOP);
    const rows = labels.map((_label, at) => [masked[at], free[at]].map((of) => top(of).map((id) => [kinds[id][0], probabilityOf(of, id)])));
    const right = labels.map((_label, at) => [masked[at], free[at]].map((of) => placeOf(top(of), tokens[at + 1])));
    const lost = tokens.slice(1).map((next, at) => probabilityOf(masked[at], next) - probabilityOf(free[at], next));
    const most = Math.max(...lost, 0);
    const row = most >= SEEN ? lost.indexOf(most) : Math.floor(lost.length / 2);
    const sees = labels.map((_label, at) => `${at + 1} of ${labels.length} ${labels.length === 1 ? "key" : "keys"} visible.`);
    if (lost.length) sees[row] += most >= SEEN ? " This row is shown first because the token that came next (✓) loses most probability here." : " This row is shown first because it is the middle one: no token loses much probability.";
    this.masks.update({ panels: [panelOf(labels, offset, windows)], predictions: { heading: "What comes after", names: ["With the mask", "Without the mask, unlike in training"], rows, right, sees, row, words: this.ofLast(masked.at(-1), free.at(-1), windows.length) } });
  }

  /** Why the prediction after the last token changes, or doesn't. @param {Distribution} masked @param {Distribution} free @param {number} layers */
  ofLast(masked, free, layers) {
    const moved = Math.max(...[...masked.keys()].map((id) => Math.abs(probabilityOf(masked, id) - probabilityOf(free, id))));
    const change = moved < 1e-5 ? "no probability changes here" : `the largest change of a probability here is ${(100 * moved).toPrecision(3)} percentage points`;
    const first = "The last token comes after all others, so the mask hides nothing from it, and its first layer is the same.";
    if (layers === 1) return `${first} This model has no other layer: ${change}.`;
    return `${first} But the tokens before it have looked ahead in that layer, and from the second layer on it reads what they made of it: ${change}.`;
  }

  setSelection() {}

  draw() {
    if (this.masks.panels) this.masks.draw();
  }
}

/** Where a token is in a list; null where it isn't. */
function placeOf(ids, id) {
  const at = ids.indexOf(id);
  return at < 0 ? null : at;
}

/** The mask as it is drawn: of each cell, in how many groups of layers it is visible. @param {string[]} labels @param {number} offset @param {number[]} windows by layer */
function panelOf(labels, offset, windows) {
  const seen = windows.map((window) => (window > 0 && window < labels.length ? window : 0));
  const sizes = [...new Set(seen.length ? seen : [0])].sort((a, b) => (b || Infinity) - (a || Infinity));
  const layersOf = (size) => seen.flatMap((window, layer) => (window === size ? [layer] : []));
  const named = (layers) => `layer${layers.length > 1 ? "s" : ""} ${layers.join(", ")}`;
  const levels = sizes.map((_, at) => (at === sizes.length - 1 ? (at ? "visible in every layer" : "visible") : `visible in ${named(sizes.slice(0, at + 1).flatMap(layersOf).sort((a, b) => a - b))}`));
  const sees = (query, key, size) => key <= query && (!size || query - key < size);
  const cells = labels.flatMap((_row, query) => labels.map((_column, key) => sizes.filter((size) => sees(query, key, size)).length));
  const hidden = cells.filter((cell) => !cell).length;
  const words = `A token sees itself and what came before it; the next token, which it is trained to predict, is hidden. Of ${cells.length.toLocaleString("en")} cells here, ${hidden.toLocaleString("en")} are hidden.`;
  return { title: "Causal mask", labels, mask: cells.join(""), offset, words, levels, before: [] };
}

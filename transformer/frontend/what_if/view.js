// Shows what two models, or one with two prompts, predict next, and the texts that both write: a view of the page What if for pages
// without a server.

import { AblationControls } from "../ablation_controls.js";
import { ApiError } from "../api_error.js";
import { node, partsOf, put, untranslated } from "../dom.js";
import { fitToText } from "../field_height.js";
import { percent, plainNumber } from "../number_format.js";
import { divergence, lastOf, likeliestOf, movedMost, probabilityOf, sharedLength } from "./distributions.js";
import { showTexts } from "./text_comparison.js";
/** @import { Parameters } from "../api.js" */
/** @import { ViewFrame } from "../page/view_frame.js" */
/** @import { Distribution } from "./distributions.js" */

/**
 * @typedef {object} Sides what is compared
 * @property {[Parameters, Parameters]} requests
 * @property {[string, string]} titles
 * @property {[string, string]} texts the ends of what is before the next token
 * @property {[number, number]} lengths of what a decoder reads
 * @property {[string, string]} after the labels of the last tokens
 * @property {Record<string, string[]>} kinds what tokens are called
 * @property {Parameters | null} writes how both go on writing; null for prompts that are compared
 * @property {string | null} other the prompt that is compared; null for the model with its changes
 * @property {number[]} ends tokens that end a text
 * @property {string[]} modules
 * @property {number} heads
 * @property {{ code: string, words: string }[]} interventions
 */

const CANDIDATES = 5; // of each distribution
const MOST_NAMED = 5; // tokens of which it is said that they gained or lost most
const MARKUP = `
  <section class="what-if" data-testid="what-if" aria-label="What if">
    <div class="changes" data-part="changes"></div>
    <label class="site-prompt" data-part="other">The other prompt <textarea rows="1" spellcheck="false" data-part="otherPrompt"></textarea></label>
    <h2>Next token</h2>
    <p class="faint" data-part="where"></p>
    <table class="site-numbers" data-part="bars"></table>
    <p data-part="less"></p>
    <p data-part="more"></p>
    <div data-part="written">
      <h2>Generated text</h2>
      <div class="text-comparison" data-part="texts"></div>
      <p class="faint" data-part="differ"></p>
    </div>
  </section>`;

export class WhatIfView {
  /** @type {Sides} */ about;
  /** @type {AblationControls} */ controls;
  /** @type {import("../api.js").Api[]} */ apis = [];

  /** @param {HTMLElement} root @param {ViewFrame} host */
  constructor(root, host) {
    this.host = host;
    root.innerHTML = MARKUP; // constant
    this.parts = partsOf(root);
    this.fit = fitToText(this.parts.otherPrompt);
    this.parts.otherPrompt.addEventListener("change", () => host.select({ other_prompt: this.parts.otherPrompt.value }));
  }

  /** @param {unknown} _ @param {Record<string, any>} about `Sides` */
  async begin(_, about) {
    this.about = /** @type {Sides} */ (about);
    const { requests, lengths, writes, other } = this.about;
    this.controls ??= new AblationControls(this.parts.changes, this.about, (change) => this.host.change(change));
    this.controls.show(this.about.interventions);
    this.parts.changes.hidden = !writes;
    this.parts.other.hidden = other === null;
    this.parts.otherPrompt.value = other ?? "";
    this.fit();
    this.parts.written.hidden = !writes;
    this.apis.forEach((api) => api.end());
    const apis = (this.apis = requests.map((request) => this.host.apiOf(request, { computed: () => {} })));
    const scores = await Promise.all(apis.map((api, side) => api.recording("scores", { first: lengths[side] })));
    this.showNext(/** @type {[Distribution, Distribution]} */ (scores.map(lastOf)));
    if (!writes) return;
    const texts = [];
    for (const api of apis) texts.push(await this.written(api, writes));
    this.showTexts(texts);
  }

  setSelection() {}

  draw() {}

  label(id) {
    return this.about.kinds[id]?.[0] ?? `#${id}`;
  }

  /** @param {[Distribution, Distribution]} both */
  showNext(both) {
    const { titles, after, interventions, writes } = this.about;
    const { bars, where, less, more } = this.parts;
    if (both.some((distribution) => [...distribution.values()].some(Number.isNaN))) throw new ApiError("With these changes the model's numbers overflow. Take one back.");
    const isOne = writes && !interventions.length;
    const shown = isOne ? both.slice(0, 1) : both;
    const [first, second] = after;
    put(where, `After “${first}”${writes || first === second ? "" : ` and “${second}”`}.${isOne ? "" : ` KL divergence ${plainNumber(divergence(both), 3)} nats: how far the second is from the first.`}`);
    bars.replaceChildren();
    const row = (cells) => cells.reduce((made, fill) => (fill(made.insertCell()), made), bars.insertRow());
    if (!isOne) row(["token", ...titles].map((title) => (cell) => Object.assign(node("b", "", cell), { textContent: title })));
    for (const id of likeliestOf(both, CANDIDATES)) {
      const shares = shown.map((distribution) => probabilityOf(distribution, id));
      row([(cell) => put(untranslated(node("code", "", cell)), this.label(id)), ...shares.map((share) => (cell) => {
        node("span", "bar", cell).style.width = `${6 * share}rem`;
        cell.append(percent(share));
      })]);
    }
    for (const [element, words, sign] of /** @type {const} */ ([[less, "Less likely", -1], [more, "Likelier", 1]])) {
      const named = movedMost(both, sign, MOST_NAMED).map((id) => `“${this.label(id)}” ${both.map((of) => percent(probabilityOf(of, id))).join(" → ")}`);
      put(element, isOne ? "" : `${words}: ${named.join(", ") || "none"}.`);
    }
  }

  /** The ids that a model writes. @param {import("../api.js").Api} api @param {Parameters} writes */
  async written(api, writes) {
    const ids = [];
    for await (const { event, data } of api.stream("generate", writes)) {
      if (event === "token") ids.push(data.id);
    }
    return ids;
  }

  /** @param {number[][]} texts */
  showTexts(texts) {
    const { titles, texts: before, kinds, ends, writes, interventions } = this.about;
    const same = sharedLength(texts);
    const words = (ids) => ids.filter((id) => !ends.includes(id)).map((id) => kinds[id][1]).join("");
    const shown = interventions.length ? texts : texts.slice(0, 1);
    showTexts(this.parts.texts, shown.map((ids, side) => ({
      title: titles[side], before: before[side], same: words(ids.slice(0, same)), differs: words(ids.slice(same, same + 1)), rest: words(ids.slice(same + 1)), ends: ends.includes(ids.at(-1)),
    })));
    const isSame = same === Math.max(...texts.map(({ length }) => length));
    const differ = isSame ? "Both write the same." : same ? `They differ after ${same} ${same === 1 ? "token" : "tokens"}.` : "They differ from the first token on.";
    const how = Number(writes.temperature) === 0 ? "always the likeliest token" : `temperature ${writes.temperature}, seed ${writes.seed}: the same random numbers for both`;
    put(this.parts.differ, `${interventions.length ? `${differ} ` : ""}Up to ${writes.max_new_tokens} tokens, with ${how}.`);
  }
}

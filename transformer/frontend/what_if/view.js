// Shows what difference a change makes: the page What if. A module for each of its questions draws it; this one asks models for them.

import { ApiError } from "../api_error.js";
import { node } from "../dom.js";
import { Ablation } from "./ablation.js";
import { Comparison } from "./comparison.js";
import { TOO_LARGE, logSoftmax } from "./distributions.js";
import { Ladder } from "./ladder.js";
import { ActivationPatching } from "./activation_patching.js";
/** @import { Api } from "../api.js" */
/** @import { Model } from "../page/answers.js" */
/** @import { ViewFrame } from "../page/view_frame.js" */
/** @import { Side } from "./data.js" */

const QUESTIONS = { ablation: Ablation, patching: ActivationPatching, comparison: Comparison, ladder: Ladder };


/** What each model's tokens are called, by its name, its version and its new words. @type {Map<string, Promise<string[]>>} */
const vocabularies = new Map();

export class WhatIfView {
  /** @type {Api[]} */ apis = [];
  /** @type {Record<string, Model>} */ models = {};
  asked = "";

  /** @param {HTMLElement} root @param {ViewFrame} host */
  constructor(root, host) {
    this.host = host;
    this.root = node("section", "what-if", root);
    this.root.dataset.testid = "what-if";
    this.root.setAttribute("aria-label", "What if");
  }

  /** @param {unknown} _ @param {Record<string, any>} about */
  async begin(_, about) {
    this.apis.forEach((api) => api.end());
    this.apis = [];
    this.models = this.host.models;
    if (about.question !== this.asked) {
      this.root.replaceChildren();
      this.question = new QUESTIONS[about.question](this.root, this);
      this.asked = about.question;
    }
    await this.question.show(/** @type {any} */ (about));
  }

  setSelection() {
    this.question?.setSelection?.();
  }

  draw() {
    this.question?.draw?.();
  }

  /** @param {{ model: string }} side */
  modelOf({ model }) {
    return this.models[model];
  }

  /** What answers questions about a side. @param {Side} side @param {{ onServer?: boolean }} [options] whether the server is to answer, where there is one */
  api(side, { onServer = false } = {}) {
    const { tokens, source, changes, begin } = side;
    const api = this.modelOf(side).apiOf({ tokens: tokens.join(), source: source.join() || null, changes, begin: begin || null }, { computed: () => {}, onServer });
    this.apis.push(api);
    return api;
  }

  /** What a model's tokens are called. @param {{ model: string }} side @returns {Promise<string[]>} */
  namesOf(side) {
    const { name, version, newWords, about: { kinds, config }, apiOf } = this.modelOf(side);
    const key = `${name} ${version} ${newWords}`;
    if (!vocabularies.has(key)) {
      const isKnown = Object.keys(kinds).length >= config.vocab_size;
      const names = isKnown ? Promise.resolve(Array.from({ length: config.vocab_size }, (_, id) => kinds[id][0])) : apiOf({}, { computed: () => {}, onServer: true }).json("vocabulary").then(({ labels }) => labels);
      vocabularies.set(key, names);
      names.catch(() => vocabularies.delete(key));
    }
    return vocabularies.get(key);
  }

  /** What a token adds to a text. @param {{ model: string }} side @param {number} id @param {boolean} [isFirst] whether the text begins with it */
  pieceOf(side, id, isFirst = false) {
    const [label, piece, first = piece] = this.modelOf(side).about.kinds[id] ?? [`#${id}`];
    return (isFirst ? first : piece) ?? label;
  }

  /** Log-probabilities of what follows a side's position, or of an encoder stands there. @param {Side} side */
  async distribution(side) {
    const name = `logits[${side.position}]`;
    const { tensors } = await this.api(side).recording("tensors", { names: [name] });
    const { data } = tensors[name];
    if (!data.every(Number.isFinite)) throw new ApiError(TOO_LARGE);
    return logSoftmax(data);
  }
}

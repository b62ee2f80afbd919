// Requests the continuation of a text from the engine as a stream, and the scores of tokens that are there already.
// Whatever breaks off is requested again, from the tokens that have arrived.
import { ApiError, sentenceOf } from "../api_error.js";
import { sameSettings } from "./sampling.js";
/** @import { Api } from "../api.js" */
/** @import { GeneratedText } from "./generated_text.js" */

const REST_MS = 200; // after a setting was changed, before the next token is drawn anew
const AGAIN_MS = 1500; // after a connection broke off, before it is tried again
const MOST_AT_ONCE = 500; // tokens of one question
const AROUND = 100; // positions before and after the one that is looked at, whose rows are asked for with its own

export class Writer {
  /** @type {Api} */ api;
  /** @type {GeneratedText} */ generated;
  /** @type {Record<string, string[]>} */ modules;
  /** @type {number | null} */ wanted; // the length that is asked for
  /** @type {AbortController | null} */ stream;

  /**
   * on: { changed(isToken), problem(sentence), settings(), whose() }: something has come; why nothing comes, or empty; { temperature, top_k,
   * top_p, seed }; [attention, layer, head] that is looked at, or null.
   */
  constructor(on) {
    this.on = on;
    this.refused = new Set(); // what was asked for in vain
  }

  /** Another text. api: of its pass; modules: { attention: [of each layer its dotted name] }. */
  begin(api, generated, modules) {
    this.halt();
    Object.assign(this, { api, generated, modules, wanted: null, asking: null });
    this.refused.clear();
    this.hasFailed = false;
    const unknown = generated.tokens.findIndex(({ probability }) => probability === undefined);
    return this.score(unknown < 0 ? generated.have : generated.start + unknown);
  }

  /** Whether the engine is being asked for tokens, or for what it thinks of those that are here. */
  get isAsking() {
    return Boolean(this.stream || this.scoring);
  }

  sampling() {
    const { temperature, top_k: k, top_p: p, seed } = this.on.settings();
    return { temperature, top_k: k || null, top_p: p && p < 1 ? p : null, seed };
  }

  /** Have the text written on until so many tokens are there, and, while it is `open`, one more. */
  async ensure(length) {
    this.wanted = length;
    this.hasFailed = false;
    while (!this.stream && this.wanted !== null && !this.generated.ended && this.generated.have < this.wanted) await this.write();
  }

  async write() {
    const { generated, api, on } = this;
    const settings = { ...on.settings() };
    const whose = on.whose();
    const stream = (this.stream = new AbortController());
    try {
      const events = api.stream("generate", {
        ...this.sampling(), tokens: generated.idsUpTo(generated.have).join(), max_new_tokens: Math.min(this.wanted - generated.have, MOST_AT_ONCE),
        ...(whose && { attention: this.moduleOf(whose), head: whose[2] }),
      }, { tries: 1, signal: stream.signal });
      for await (const { event, data } of events) {
        if (stream !== this.stream) return;
        if (event !== "token") continue;
        generated.add(data, settings, whose);
        on.problem("");
        on.changed(true);
      }
    } catch (error) {
      if (stream !== this.stream) return;
      this.hasFailed = !(error instanceof ApiError) || error.isFinal;
      if (this.hasFailed) this.wanted = null;
      on.problem(sentenceOf(error));
      on.changed();
      if (!(error instanceof ApiError)) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    } finally {
      if (stream === this.stream) this.stream = null;
    }
  }

  /** Ask for nothing more: what has come stays. */
  halt() {
    this.stream?.abort();
    this.stream = null;
    this.wanted = null;
    clearTimeout(this.timer);
  }

  /** The settings were changed: what is ahead is drawn anew. length: of the text that is seen; goal: how far it is to be written. */
  redraw(length, goal) {
    const { generated } = this;
    const ahead = generated.tokens.slice(length - generated.start);
    if (!ahead.length && !this.isAsking) return;
    if (ahead.length && ahead.every((token) => sameSettings(token.settings, this.on.settings()))) return;
    this.halt();
    generated.dropAhead(length);
    this.timer = setTimeout(() => (goal === null ? this.scoreAgain(length) : this.ensure(goal + 1)), REST_MS);
  }

  /** What the engine thinks of the text from a position on, and which token comes next. */
  async score(first) {
    const { generated, api, on } = this;
    const scoring = (this.scoring = {});
    const settings = { ...on.settings() };
    const count = generated.have;
    try {
      const scores = await api.recording("scores", { ...this.sampling(), tokens: generated.idsUpTo(count).join(), first });
      generated.learn(scores.metadata.kinds); // the prompt's tokens are named, though a dial was turned meanwhile
      if (scoring !== this.scoring || generated.have !== count) return;
      generated.addScores(scores, settings, !generated.ended && !this.stream && sameSettings(settings, on.settings())); // a stream draws it itself
      on.problem("");
    } finally {
      if (scoring === this.scoring) this.scoring = null;
      if (generated === this.generated) on.changed();
    }
  }

  /** The same of another text on screen, until it is answered, or another one is there. */
  async scoreAgain(first) {
    const { generated } = this;
    const { current } = generated.tree;
    while (generated === this.generated && current === generated.tree.current) {
      try {
        return await this.score(first);
      } catch (error) {
        this.fail(error);
        if (/** @type {ApiError} */ (error).isFinal) return;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /** What the engine thinks of the tokens of another branch from a position on; null if that can't be had. */
  async scoresOf(written, first) {
    const tokens = [...this.generated.ids.prompt, ...written.map(({ id }) => id)];
    try {
      return await this.api.recording("scores", { ...this.sampling(), tokens: tokens.join(), first });
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  /** Have what is looked at: the row of a head at a position, and all logits of it. */
  async look(whose, position) {
    const { generated, api } = this;
    if (this.asking) return;
    const isGiven = position < generated.start;
    if (isGiven && !generated.known(position) && !this.refused.has("prompt")) {
      this.refused.add("prompt");
      await this.ask(() => api.recording("scores", { ...this.sampling(), tokens: generated.ids.prompt.join(), first: 1 }),
        (scores) => generated.addPromptScores(scores));
      return;
    }
    if (!generated.known(position)) return;
    const key = `${whose},${position}`;
    const module = whose && this.moduleOf(whose);
    if (module && !generated.row(whose, position) && !this.refused.has(key)) {
      this.refused.add(key); // asked for once
      const [first, last] = [Math.max(isGiven ? 1 : generated.start, position - AROUND), Math.min(generated.have, position + AROUND)];
      await this.ask(() => api.recording("rows", { tokens: generated.idsUpTo(generated.have).join(), attention: module, head: whose[2], first, last }),
        ({ tensors }) => generated.addRows(whose, tensors));
    } else if (!generated.logits(position) && !this.refused.has(position)) {
      this.refused.add(position);
      const { windowStart = 0 } = generated.known(position);
      const tokens = generated.idsUpTo(position).slice(windowStart);
      const name = `logits[${tokens.length - 1}]`;
      await this.ask(() => api.recording("tensors", { tokens: tokens.join(), begin: windowStart || null, names: [name] }), ({ tensors, metadata }) => {
        generated.whole.set(position, tensors[name].data);
        if (metadata.vocabulary) generated.learnLabels(metadata.vocabulary);
      });
    }
  }

  async ask(question, take) {
    const { generated } = this;
    const count = generated.have;
    this.asking = true;
    try {
      const answer = await question();
      if (generated === this.generated && generated.have >= count) take(answer);
    } catch (error) {
      this.fail(error);
    } finally {
      this.asking = null;
      if (generated === this.generated) this.on.changed();
    }
  }

  /** Say why something can't be had; an error of the page's own is thrown on. */
  fail(error) {
    this.on.problem(sentenceOf(error));
    if (!(error instanceof ApiError)) throw error;
  }

  /** Whether a row was asked for, and hasn't come. */
  isRefused(whose, position) {
    return this.refused.has(`${whose},${position}`) && !this.asking;
  }

  moduleOf([attention, layer]) {
    return this.modules[attention]?.[layer] ?? null;
  }
}

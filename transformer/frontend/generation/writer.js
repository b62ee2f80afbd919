// Requests the continuation of a text as a stream, and scores of the tokens that are there already. A stream that breaks
// off is requested again, from the tokens that have arrived.
import { ApiError, sentenceOf } from "../api_error.js";
import { sameSettings } from "./sampling.js";
/** @import { Api } from "../api.js" */
/** @import { GeneratedText } from "./generated_text.js" */

const REST_MS = 200; // after a setting was changed, before tokens are drawn anew
const AGAIN_MS = 1500; // after a connection broke off, before it is retried
const MOST_AT_ONCE = 500; // tokens of one request
const AROUND = 100; // positions on either side of the selected one whose rows are requested with its own

export class Writer {
  /** @type {Api} */ api;
  /** @type {GeneratedText} */ generated;
  /** @type {Record<string, string[]>} */ modules;
  /** @type {number | null} */ wanted; // the length that the text should reach
  /** @type {AbortController | null} */ stream;

  /**
   * on: { changed(isToken), problem(sentence), settings(), whose() }. changed: something has arrived; problem: why nothing arrives, or
   * empty; settings: { temperature, top_k, top_p, seed }; whose: the selected [attention, layer, head], or null.
   */
  constructor(on) {
    this.on = on;
    this.refused = new Set(); // keys of requests that failed
  }

  /** Begin another text. api: of its pass; modules: dotted names by attention, one per layer. */
  begin(api, generated, modules) {
    this.halt();
    Object.assign(this, { api, generated, modules, wanted: null, asking: null });
    this.refused.clear();
    this.hasFailed = false;
    const unknown = generated.tokens.findIndex(({ probability }) => probability === undefined);
    return this.score(unknown < 0 ? generated.have : generated.start + unknown);
  }

  /** Whether a request for tokens or scores is under way. */
  get isAsking() {
    return Boolean(this.stream || this.scoring);
  }

  sampling() {
    const { temperature, top_k: k, top_p: p, seed } = this.on.settings();
    return { temperature, top_k: k || null, top_p: p && p < 1 ? p : null, seed };
  }

  /** Continue the text until it has so many tokens, and one more while it is `open`. */
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

  /** Stop requesting; what has arrived stays. */
  halt() {
    this.stream?.abort();
    this.stream = null;
    this.wanted = null;
    clearTimeout(this.timer);
  }

  /** The settings were changed: draw the tokens ahead anew. length: of the text on screen; goal: the length that it should reach. */
  redraw(length, goal) {
    const { generated } = this;
    const ahead = generated.tokens.slice(length - generated.start);
    if (!ahead.length && !this.isAsking) return;
    if (ahead.length && ahead.every((token) => sameSettings(token.settings, this.on.settings()))) return;
    this.halt();
    generated.dropAhead(length);
    this.timer = setTimeout(() => (goal === null ? this.scoreAgain(length) : this.ensure(goal + 1)), REST_MS);
  }

  /** Request scores of the text from a position on, and the next token. */
  async score(first) {
    const { generated, api, on } = this;
    const scoring = (this.scoring = {});
    const settings = { ...on.settings() };
    const count = generated.have;
    try {
      const scores = await api.recording("scores", { ...this.sampling(), tokens: generated.idsUpTo(count).join(), first });
      generated.learn(scores.metadata.kinds); // names stay valid though a setting was changed meanwhile
      if (scoring !== this.scoring || generated.have !== count) return;
      generated.addScores(scores, settings, !generated.ended && !this.stream && sameSettings(settings, on.settings())); // a stream draws the next token itself
      on.problem("");
    } finally {
      if (scoring === this.scoring) this.scoring = null;
      if (generated === this.generated) on.changed();
    }
  }

  /** Request scores of the text on screen, again and again until they arrive or the text is another one. */
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

  /** Scores of another branch's tokens from a position on; null if the request fails. */
  async scoresOf(written, first) {
    const tokens = [...this.generated.ids.prompt, ...written.map(({ id }) => id)];
    try {
      return await this.api.recording("scores", { ...this.sampling(), tokens: tokens.join(), first });
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  /** Request what the selection needs: a head's row at a position, and all its logits. */
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
      this.refused.add(key); // request it only once
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

  /** Say why a request failed; rethrow the page's own errors. */
  fail(error) {
    this.on.problem(sentenceOf(error));
    if (!(error instanceof ApiError)) throw error;
  }

  /** Whether a row was requested, and hasn't arrived. */
  isRefused(whose, position) {
    return this.refused.has(`${whose},${position}`) && !this.asking;
  }

  moduleOf([attention, layer]) {
    return this.modules[attention]?.[layer] ?? null;
  }
}

// Has a text written on: asks the engine for what comes next, as a stream, and for what isn't known of what is there. Whatever
// breaks off is asked for again, from the tokens that are here.
import { ApiError } from "../api.js";
import { sameDials } from "./sampling.js";
import { eventsOf } from "./stream.js";
/** @import { Api } from "../api.js" */
/** @import { GeneratedText } from "./generated_text.js" */

const REST_MS = 200; // after a dial was turned, before the next token is drawn anew
const AGAIN_MS = 1500; // after a connection broke off, before it is tried again
const MOST_AT_ONCE = 500; // tokens of one question
const AROUND = 100; // places before and after the one that is looked at, whose rows are asked for with its own

export class Writer {
  /** @type {Api} */ api;
  /** @type {GeneratedText} */ story;
  /** @type {Record<string, string[]>} */ modules;
  /** @type {number | null} */ wanted; // the length that is asked for
  /** @type {AbortController | null} */ stream;

  /**
   * on: { changed(), problem(sentence), dials(), whose() }: something has come; why nothing comes, or empty; { temperature, top_k,
   * top_p, seed }; [attention, layer, head] that is looked at, or null.
   */
  constructor(on) {
    this.on = on;
    this.refused = new Set(); // what was asked for in vain
  }

  /** Another text. api: of its pass; modules: { attention: [of each layer its dotted name] }. */
  begin(api, story, modules) {
    this.halt();
    Object.assign(this, { api, story, modules, wanted: null, asking: null });
    this.refused.clear();
    this.hasFailed = false;
    const unknown = story.tokens.findIndex(({ probability }) => probability === undefined);
    return this.score(unknown < 0 ? story.have : story.start + unknown);
  }

  /** Whether the engine is being asked for tokens, or for what it thinks of those that are here. */
  get isAsking() {
    return Boolean(this.stream || this.scoring);
  }

  sampling() {
    const { temperature, top_k: k, top_p: p, seed } = this.on.dials();
    return { temperature, top_k: k || null, top_p: p && p < 1 ? p : null, seed };
  }

  /** Have the text written on until so many tokens are there, and, while it is `open`, one more. */
  async ensure(length) {
    this.wanted = length;
    this.hasFailed = false;
    while (!this.stream && this.wanted !== null && !this.story.ended && this.story.have < this.wanted) await this.write();
  }

  async write() {
    const { story, api, on } = this;
    const dials = { ...on.dials() };
    const whose = on.whose();
    const stream = (this.stream = new AbortController());
    try {
      const response = await api.ask("generate", {
        ...this.sampling(), tokens: story.idsUpTo(story.have).join(), max_new_tokens: Math.min(this.wanted - story.have, MOST_AT_ONCE),
        ...(whose && { attention: this.moduleOf(whose), head: whose[2] }),
      }, { tries: 1, signal: stream.signal });
      for await (const { event, data } of eventsOf(response)) {
        if (stream !== this.stream) return;
        if (event === "error") throw new ApiError(data.error);
        if (event !== "token") continue;
        story.add(data, dials, whose);
        on.problem("");
        on.changed();
      }
    } catch (error) {
      if (stream !== this.stream) return;
      this.hasFailed = error instanceof ApiError && error.isFinal;
      if (this.hasFailed) this.wanted = null;
      on.problem(error instanceof ApiError ? error.message : "The connection has broken off. Writing goes on when it is back.");
      on.changed();
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

  /** The dials were turned: what is ahead is drawn anew. length: of the text that is seen; goal: how far it is to be written. */
  redraw(length, goal) {
    const { story } = this;
    const ahead = story.tokens.slice(length - story.start);
    if (!ahead.length && !this.isAsking) return;
    if (ahead.length && ahead.every((token) => sameDials(token.dials, this.on.dials()))) return;
    this.halt();
    story.dropAhead(length);
    this.timer = setTimeout(() => (goal === null ? this.scoreAgain(length) : this.ensure(goal + 1)), REST_MS);
  }

  /** What the engine thinks of the text from a place on, and which token comes next. */
  async score(first) {
    const { story, api, on } = this;
    const scoring = (this.scoring = {});
    const dials = { ...on.dials() };
    const count = story.have;
    try {
      const found = await api.recording("scores", { ...this.sampling(), tokens: story.idsUpTo(count).join(), first });
      if (scoring !== this.scoring || story.have !== count) return;
      story.addScores(found, dials, !story.ended && !this.stream && sameDials(dials, on.dials())); // a stream draws it itself
      on.problem("");
    } finally {
      if (scoring === this.scoring) this.scoring = null;
      if (story === this.story) on.changed();
    }
  }

  /** The same of another text on screen, until it is answered, or another one is there. */
  async scoreAgain(first) {
    const { story } = this;
    const { current } = story.tree;
    while (story === this.story && current === story.tree.current) {
      try {
        return await this.score(first);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.on.problem(error.message);
        if (error.isFinal) return;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /** What the engine thinks of the tokens of another branch from a place on; null if that can't be had. */
  async scoresOf(written, first) {
    const tokens = [...this.story.ids.prompt, ...written.map(({ id }) => id)];
    try {
      return await this.api.recording("scores", { ...this.sampling(), tokens: tokens.join(), first });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.on.problem(error.message);
      return null;
    }
  }

  /** Have what is looked at: the row of a head at a place, and all logits of it. */
  async look(whose, place) {
    const { story, api } = this;
    if (this.asking || !story.known(place)) return;
    const key = `${whose},${place}`;
    const module = whose && this.moduleOf(whose);
    if (module && !story.row(whose, place) && !this.refused.has(key)) {
      this.refused.add(key); // asked for once
      const [first, last] = [Math.max(story.start, place - AROUND), Math.min(story.have, place + AROUND)];
      await this.ask(() => api.recording("rows", { tokens: story.idsUpTo(story.have).join(), attention: module, head: whose[2], first, last }),
        ({ tensors }) => story.addRows(whose, tensors));
    } else if (!story.logits(place) && !this.refused.has(place)) {
      this.refused.add(place);
      const { windowStart = 0 } = story.known(place);
      const tokens = story.idsUpTo(place).slice(windowStart);
      const name = `logits[${tokens.length - 1}]`;
      await this.ask(() => api.recording("tensors", { tokens: tokens.join(), begin: windowStart || null, names: [name] }), ({ tensors, metadata }) => {
        story.whole.set(place, tensors[name].data);
        if (metadata.vocabulary) story.learnLabels(metadata.vocabulary);
      });
    }
  }

  async ask(question, take) {
    const { story } = this;
    const count = story.have;
    this.asking = true;
    try {
      const found = await question();
      if (story === this.story && story.have >= count) take(found);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.on.problem(error.message);
    } finally {
      this.asking = null;
      if (story === this.story) this.on.changed();
    }
  }

  /** Whether a row was asked for, and hasn't come. */
  isRefused(whose, place) {
    return this.refused.has(`${whose},${place}`) && !this.asking;
  }

  moduleOf([attention, layer]) {
    return this.modules[attention]?.[layer] ?? null;
  }
}

// Holds a generated text: its prompt, every token after it, on screen or ahead of it, and its attention. A position counts
// the decoder's tokens from 0; an index counts the strip's tokens, which begin with the source.

import { logSumExp } from "../arithmetic.js";
import { ranking } from "./sampling.js";
import { Tree } from "./branch_tree.js";
/** @import { Recording } from "../recording.js" */
/** @import { SamplingSettings, Token } from "./branch_tree.js" */

/** @typedef {{ label: string, shown: string, first: string }} Kind a token of the vocabulary: its label, its text, and its text at a text's beginning */

const KEPT_HEADS = 24; // heads whose rows are cached

export class GeneratedText {
  /** @type {Tree} */ tree;
  /** @type {Map<number, Kind>} */ kinds;
  /** @type {Record<number, string>} */ vocabulary;
  /** @type {number[]} */ ends = []; // tokens after which a text ends
  /** @type {number} */ context;
  /** @type {string} */ title;
  /** @type {string | undefined} */ arrow;
  /** @type {string[] | undefined} */ newWords;

  /**
   * @param {{
   *   prompt?: number[], source?: number[], vocabulary?: Record<number, string>, ends?: number[], context?: number, title?: string,
   *   arrow?: string, newWords?: string[],
   * }} [about]
   * @param {Tree} [tree] the texts after this prompt
   * @param {Map<number, Kind>} [kinds]
   */
  constructor({ prompt = [], source = [], ...about } = {}, tree = new Tree(prompt.length), kinds = new Map()) {
    Object.assign(this, about, { tree, kinds });
    this.ids = { prompt, source };
    this.rows = new Map(); // head → position → { start, weights }
    this.whole = new Map(); // position → all logits of a large vocabulary
    this.given = new Map(); // position in the prompt → the model's prediction there
    /** @type {Partial<Token> | null} */
    this.next = null; // what is known of the position after the last token
    this.name();
  }

  /** Name the tokens that have no names yet. */
  name() {
    const { prompt, source } = this.ids;
    this.source = source.map((token, at) => this.named(token, "p", at === 0));
    this.prompt = prompt.map((token, at) => this.named(token, "p", at === 0 && !source.length));
    if (source.length && this.arrow) this.prompt[0] = { ...this.prompt[0], shown: this.arrow };
    this.tokens.forEach((token, at) => (this.tokens[at] = this.asShown(token, at)));
  }

  /** @returns {Token} */
  asShown(token, at) {
    return { ...token, ...this.named(token.id, token.flag, at === 0 && this.ids.source.length > 0) };
  }

  get tokens() {
    return this.tree.current.tokens;
  }

  get start() {
    return this.ids.prompt.length;
  }

  /** The position after the last token that has arrived. */
  get have() {
    return this.start + this.tokens.length;
  }

  /** How many tokens precede position 0 in the strip. */
  get before() {
    return this.ids.source.length;
  }

  /** Whether the text has reached an end token. */
  get ended() {
    return this.ends.includes(this.tokens.at(-1)?.id);
  }

  /** The ids of the decoder's tokens before a position. */
  idsUpTo(position) {
    return [...this.ids.prompt, ...this.tokens.map(({ id }) => id)].slice(0, position);
  }

  /** Add a token of the engine's stream. settings: those that drew it; whose: the head of its row. */
  add(event, settings, whose) {
    this.learn(event.kinds);
    const { id, probability, rank, entropy, point, window_start: windowStart, logits = null, top = null } = event;
    this.tokens.push(this.asShown({ id, flag: "w", probability, rank, entropy, point, windowStart, settings, logits, top }, this.tokens.length));
    this.next = null;
    if (event.row && whose) this.rowsOf(whose).set(event.position, { start: event.row_start, weights: event.row });
  }

  /**
   * Add the scores of the tokens from a position on, and the token that these settings draw next, if `isDrawn`.
   *
   * @param {Recording} scores
   * @param {SamplingSettings} settings
   * @param {boolean} isDrawn
   */
  addScores({ tensors, metadata }, settings, isDrawn) {
    const { first, kinds } = metadata;
    this.learn(kinds);
    const { drawn, points } = tensors;
    const count = drawn.data.length;
    for (let at = 0; at < count; at++) {
      const known = scoresAt(tensors, at);
      const index = first + at - this.start;
      const token = this.tokens[index];
      const how = { point: points.data[at], settings };
      if (token) {
        const isOurs = token.flag === "u" && token.id === drawn.data[at]; // the present settings draw it, too
        this.tokens[index] = this.asShown({ ...token, ...known, ...(isOurs && { ...how, flag: "w" }) }, index); // a new object, so that views notice
      } else if (at === count - 1 && index === this.tokens.length) {
        if (isDrawn) this.tokens.push(this.asShown({ id: drawn.data[at], flag: "w", ...known, ...how }, index));
        else this.next = known;
      }
    }
  }

  /** Add the predictions within the prompt, from position `first` on. @param {Recording} scores */
  addPromptScores({ tensors, metadata: { first, kinds } }) {
    this.learn(kinds);
    for (let position = first; position < this.start; position++) this.given.set(position, scoresAt(tensors, position - first));
  }

  /** Add rows of a head's attention. */
  addRows(whose, { rows, place: positions, start, length }) {
    const known = this.rowsOf(whose);
    let offset = 0;
    positions.data.forEach((position, at) => {
      known.set(position, { start: start.data[at], weights: rows.data.slice(offset, offset + length.data[at]) });
      offset += length.data[at];
    });
  }

  learn(kinds = {}) {
    for (const [key, [label, shown, first = shown]] of Object.entries(kinds)) this.kinds.set(Number(key), { label, shown, first });
  }

  /** Add names of tokens. */
  learnLabels(labels) {
    for (const [id, label] of Object.entries(labels)) if (!this.kinds.has(Number(id))) this.learn({ [id]: [label, label] });
  }

  /** Drop the tokens ahead, but keep what is known of the first of their positions. */
  dropAhead(length) {
    const ahead = this.tokens.splice(length - this.start);
    if (ahead.length) this.next = ahead[0];
    this.forgetRows(length);
  }

  /** Forget the rows and logits after a position: the text is another one from there on. */
  forgetRows(position = 0) {
    for (const known of [this.whole, ...this.rows.values()]) for (const later of known.keys()) if (later > position) known.delete(later);
  }

  /** A token that is chosen by hand, with what is known of its position. */
  picked(position, id) {
    const there = this.tokens[position - this.start] ?? this.next;
    const { logits = null, top = null, entropy = NaN, windowStart = 0, point = null, settings = null } = there ?? {};
    const [probability, rank] = this.statistics(position, id);
    return this.asShown({ id, flag: "h", probability, rank, entropy, windowStart, logits, top, point, settings }, position - this.start);
  }

  /** [probability, rank] of a token at a position, undefined if unknown. */
  statistics(position, id) {
    const scored = this.scored(position);
    if (!scored) return [NaN, NaN];
    const at = scored.ids.indexOf(id);
    return at < 0 ? [NaN, NaN] : [Math.exp(scored.logits[at] - scored.normaliser), at + 1];
  }

  rowsOf(whose) {
    const key = whose.join();
    const known = this.rows.get(key) ?? new Map();
    this.rows.delete(key);
    this.rows.set(key, known); // the last entry is the last used
    if (this.rows.size > KEPT_HEADS) this.rows.delete(this.rows.keys().next().value);
    return known;
  }

  /** @returns {Kind} */
  kind(id) {
    return this.kinds.get(id) ?? { label: `#${id}`, shown: `#${id}`, first: `#${id}` };
  }

  /** A token with its visible text; the first of a text may have no space before it. */
  named(id, flag, isFirst) {
    const { label, shown, first } = this.kind(id);
    return { id, label, shown: isFirst ? first : shown, flag };
  }

  /** The token at an index of the strip. @returns {Token} */
  at(index) {
    const position = index - this.before;
    return position < 0 ? this.source[index] : this.prompt[position] ?? this.tokens[position - this.start];
  }

  /** The token at a position; undefined until it arrives. @returns {Token | undefined} */
  token(position) {
    return this.at(position + this.before);
  }

  /** The head's attention that chose the token at a position: { start, weights }, start counting indices of the strip; null if unknown. */
  row(whose, position) {
    const row = whose && this.rows.get(whose.join())?.get(position);
    if (!row) return null;
    return { start: row.start + (whose[0] === "cross" ? 0 : this.before), weights: row.weights };
  }

  /** @returns {Partial<Token> | null} */
  known(position) {
    if (position < this.start) return this.given.get(position) ?? null;
    return position === this.have ? this.next : this.token(position) ?? null;
  }

  /** All logits of a position, or null if they aren't known. */
  logits(position) {
    return this.known(position)?.logits ?? this.whole.get(position) ?? null;
  }

  /** { ids, logits, normaliser } of a position, the likeliest token first: all, or of a large vocabulary the top; null if unknown. */
  scored(position) {
    const known = this.known(position);
    if (known?.top) return { ...known.top, ids: Array.from(known.top.ids) };
    const logits = known?.logits;
    if (!logits) return null;
    const order = Array.from(ranking(logits));
    return { ids: order, logits: order.map((id) => logits[id]), normaliser: logSumExp(logits) };
  }

  /** The likeliest `count` tokens at a position by the model's own distribution, [{ id, probability }]; empty if unknown. */
  likeliest(position, count) {
    const scores = this.scored(position);
    return scores ? scores.ids.slice(0, count).map((id, at) => ({ id, probability: Math.exp(scores.logits[at] - scores.normaliser) })) : [];
  }
}

/** The scores of the at-th position among those of a recording. */
function scoresAt(tensors, at) {
  const { probability, rank, entropy, window_start: starts, logits, top_ids: ids, top_logits: topLogits, normaliser } = tensors;
  const part = (tensor) => tensor?.data.slice(at * tensor.shape[1], (at + 1) * tensor.shape[1]);
  return {
    probability: probability.data[at], rank: rank.data[at], entropy: entropy.data[at], windowStart: starts.data[at], logits: part(logits) ?? null,
    top: ids ? { ids: part(ids), logits: part(topLogits), normaliser: normaliser.data[at] } : null,
  };
}

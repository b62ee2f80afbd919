// What is known of a text: the prompt, every token that has come after it, seen or still ahead, and where heads looked.
// A place counts the decoder's tokens from 0; an index counts what stands in the strip, so that a source comes before it.

import { ranking } from "./draw.js";

const KEPT_HEADS = 24; // heads whose rows are remembered
// p: given; w: written; h: chosen by hand; u: written, it isn't known how, as in a text that came with a link.
const FLAGS = ["w", "h", "u"];

export class Story {
  constructor() {
    this.kinds = new Map(); // id → { label, shown, first }
    this.source = [];
    this.prompt = [];
    this.tokens = [];
    this.rows = new Map(); // head → place → { start, weights }
    this.whole = new Map(); // place → its logits, where the message had only the likeliest
    this.ended = false;
  }

  get start() {
    return this.prompt.length;
  }

  /** The place after the last token that has come. */
  get have() {
    return this.start + this.tokens.length;
  }

  /** How many tokens stand before place 0 in the strip. */
  get before() {
    return this.source.length;
  }

  /**
   * Take in a message. Returns false if tokens between are missing, so that the whole text has to be asked for; another text, or
   * another branch of it, has to come whole.
   */
  take({ metadata, tensors }) {
    const { id, branch, first, whole, prompt } = metadata;
    const isOther = id !== this.id || branch !== this.branch;
    if (!whole && (isOther || (tensors.ids?.data.length && first > this.have))) return false;
    if (id !== this.id) this.kinds.clear();
    for (const [key, [label, shown, first = shown]] of Object.entries(metadata.kinds ?? {})) this.kinds.set(Number(key), { label, shown, first });
    if (whole) this.begin(metadata, prompt ?? { source: [], text: [] }, isOther);
    this.addTokens(metadata, tensors);
    this.addRows(metadata, tensors);
    if (tensors.logits_at) this.whole.set(metadata.logits_place, tensors.logits_at.data.slice());
    return true;
  }

  begin({ id, branch, vocabulary, end, context, title, start_label: arrow }, prompt, isOther) {
    Object.assign(this, { id, branch, vocabulary, end, context, title });
    this.source = prompt.source.map((token, at) => this.named(token, "p", at === 0));
    this.prompt = prompt.text.map((token, at) => this.named(token, "p", at === 0 && !this.source.length));
    if (this.source.length && arrow) this.prompt[0] = { ...this.prompt[0], shown: arrow };
    this.tokens = [];
    this.ended = false;
    if (!isOther) return;
    this.rows.clear();
    this.whole.clear();
  }

  addTokens({ first, dials, points, ended }, tensors) {
    const count = tensors.ids?.data.length ?? 0;
    if (!count) return;
    this.tokens.length = first - this.start; // what follows was drawn otherwise
    for (const rows of this.rows.values()) for (const place of rows.keys()) if (place > first) rows.delete(place);
    for (const place of this.whole.keys()) if (place > first) this.whole.delete(place);
    const { ids, probability, rank, entropy, picked, dial, logits, top_ids: topIds, top_logits: topLogits, normaliser } = tensors;
    for (let at = 0; at < count; at++) {
      const part = (tensor) => tensor?.data.slice(at * tensor.shape[1], (at + 1) * tensor.shape[1]); // a copy: messages go
      this.tokens.push({
        ...this.named(ids.data[at], FLAGS[picked?.data[at] ?? 0], first + at === this.start && this.source.length > 0),
        probability: probability.data[at], rank: rank.data[at], entropy: entropy.data[at],
        dials: dials?.[dial?.data[at]] ?? null, point: points?.[at] ?? null, logits: part(logits),
        top: topIds ? { ids: part(topIds), logits: part(topLogits), normaliser: normaliser.data[at] } : null,
      });
    }
    this.ended = ended;
  }

  addRows({ rows_of: whose }, { rows, row_place: places, row_start: starts, row_length: lengths }) {
    if (!rows || !whose || !places.data.length) return;
    const known = this.rowsOf(whose);
    for (let at = 0, offset = 0; at < places.data.length; at++) {
      const length = lengths.data[at];
      known.set(places.data[at], { start: starts.data[at], weights: rows.data.slice(offset, offset + length) });
      offset += length;
    }
  }

  rowsOf(whose) {
    const key = whose.join();
    const known = this.rows.get(key) ?? new Map();
    this.rows.delete(key);
    this.rows.set(key, known); // the last in order is the last that was used
    if (this.rows.size > KEPT_HEADS) this.rows.delete(this.rows.keys().next().value);
    return known;
  }

  kind(id) {
    return this.kinds.get(id) ?? { label: `#${id}`, shown: `#${id}`, first: `#${id}` };
  }

  /** A token as it is shown; the first of a text may have no space before it. */
  named(id, flag, isFirst) {
    const { label, shown, first } = this.kind(id);
    return { id, label, shown: isFirst ? first : shown, flag };
  }

  /** The token at an index of the strip. */
  at(index) {
    const place = index - this.before;
    return place < 0 ? this.source[index] : this.prompt[place] ?? this.tokens[place - this.start];
  }

  /** The token at a place; undefined where none has come. */
  token(place) {
    return this.at(place + this.before);
  }

  /** Where a head looked to choose the token at a place: { start, weights }, start in indices of the strip; null if unknown. */
  row(whose, place) {
    const found = whose && this.rows.get(whose.join())?.get(place);
    if (!found) return null;
    return { start: found.start + (whose[0] === "cross" ? 0 : this.before), weights: found.weights };
  }

  /** All logits of a place, or null if they haven't come. */
  logits(place) {
    return this.token(place)?.logits ?? this.whole.get(place) ?? null;
  }

  /** The likeliest tokens at a place by the model's own odds: [{ id, probability }], as many as that; empty if unknown. */
  likeliest(place, count) {
    const token = this.token(place);
    const scored = (ids, logits, normaliser) => Array.from(ids.slice(0, count), (id, at) => ({ id, probability: Math.exp(logits[at] - normaliser) }));
    if (token?.top) return scored(token.top.ids, token.top.logits, token.top.normaliser);
    const logits = this.logits(place);
    if (!logits) return [];
    const order = ranking(logits);
    return scored(order, Array.from(order.slice(0, count), (id) => logits[id]), normaliserOf(logits));
  }
}

/** The logarithm of the sum of all exponentials. */
function normaliserOf(logits) {
  let largest = -Infinity;
  for (const logit of logits) if (logit > largest) largest = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - largest);
  return largest + Math.log(sum);
}

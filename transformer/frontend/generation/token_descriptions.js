// Describes the tokens of a text in words.

import { placeOf } from "../engine/new_words.js";
import { percent } from "../number_format.js";

/** "token 5", or "source token 5", of an index in the strip. */
export function nameOf(generated, index) {
  return index < generated.before ? `source token ${index}` : `token ${index - generated.before}`;
}

/** Lines on the token at an index. looked: { query, weight(index) }: who looks, by index, and how much at whom; or null. */
export function describe(generated, index, looked) {
  const token = generated.at(index);
  const { label, id, flag, probability, rank, entropy } = token;
  const origin = { p: index < generated.before ? "" : ", from the prompt", h: ", chosen by hand", w: "", u: "" }[flag];
  const lines = [`${nameOf(generated, index)} “${label}”, id ${id}${origin}${placeOf(label, generated.newWords)}`];
  if (probability !== undefined) lines.push(`probability ${percent(probability)}, rank ${rank}`);
  if (token.windowStart) lines.push(`predicted from token ${token.windowStart} on, where the context begins`);
  if (entropy !== undefined) lines.push(`entropy ${entropy.toFixed(2)} nats = ${(entropy / Math.LN2).toFixed(2)} bits`);
  const weight = looked?.weight(index);
  if (weight != null) lines.push(`attention from ${nameOf(generated, looked.query)}: ${percent(weight)}`);
  return lines;
}

/** How the token at a position was chosen, or that it is the next, in words. */
export function howChosen(generated, position, isNext) {
  const after = `after “${generated.token(position - 1)?.label ?? ""}”`;
  const begin = generated.known(position)?.windowStart ?? 0;
  const window = begin ? ` The model reads from token ${begin} on` : "";
  if (isNext) return `Next is token ${position}, ${after}.${window && `${window}: its context holds ${generated.context}.`}`;
  const { label, flag } = generated.token(position);
  const { probability, rank, entropy } = generated.known(position) ?? {};
  const how = { p: "stands in the prompt", h: "was chosen by hand" }[flag] ?? "was chosen";
  const numbers = probability === undefined ? "" : `: probability ${percent(probability)}, rank ${rank}, entropy ${entropy.toFixed(2)} nats`;
  return `Token ${position} “${label}” ${how} ${after}${numbers}.${window && `${window}.`}`;
}

/** What a token of the source is, in words. */
export function inSource(generated, index) {
  return `“${generated.at(index).label}” is ${nameOf(generated, index)}. The encoder reads the whole source at once and predicts nothing after it.`;
}

/**
 * How much a head looked at a token of the source to predict each generated token: { weight(index), summary }; null for a head that
 * doesn't look at the source.
 */
export function lookedAt(generated, whose, source, length) {
  if (whose?.[0] !== "cross") return null;
  const weight = (index) => (index - generated.before < length ? generated.row(whose, index - generated.before)?.weights[source] ?? null : null);
  let top = generated.before + generated.start;
  for (let index = top; index < generated.before + length; index++) if (weight(index) > weight(top)) top = index;
  const named = (index) => `${nameOf(generated, index)} “${generated.at(index).label}”`;
  const summary = weight(top) === null ? "nothing is generated yet" : `${named(source)} is looked at most to predict ${named(top)}, ${percent(weight(top))}`;
  return { weight, summary };
}

/** Where a head looked, by index: { query, start, weights, largest, weight(index) }. row: as `GeneratedText.row` has it, or null. */
export function lookOf(row, query) {
  if (!row?.weights.length) return null;
  const { start, weights } = row;
  let top = 0;
  for (let at = 1; at < weights.length; at++) if (weights[at] > weights[top]) top = at;
  return { query, start, weights, top: start + top, largest: weights[top], weight: (index) => weights[index - start] ?? null };
}

/** The index of the token that an event is about, or null. */
export function indexOf(event) {
  const index = event.target.closest?.("[data-index]")?.dataset.index;
  return index === undefined ? null : Number(index);
}

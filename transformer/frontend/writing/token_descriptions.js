// Describes the tokens of a text in words.

/** A probability in per cent, finer where it is near 0 or 1. */
export function chance(p) {
  if (p == null || Number.isNaN(p)) return "–";
  const value = 100 * p;
  if (value === 0) return "0%";
  if (value < 0.001) return "<0.001%";
  return `${value < 1 ? value.toPrecision(2) : value.toFixed(value > 99 && value < 100 ? 2 : 1)}%`;
}

/** "token 5", or "source token 5", of an index in the strip. */
export function nameOf(story, index) {
  return index < story.before ? `source token ${index}` : `token ${index - story.before}`;
}

/** Lines on the token at an index. looked: { query, weight(index) }: who looks, by index, and how much at whom; or null. */
export function describe(story, index, looked) {
  const token = story.at(index);
  const { label, id, flag, probability, rank, entropy } = token;
  const origin = { p: index < story.before ? "" : ", from the prompt", h: ", chosen by hand", w: "", u: "" }[flag];
  const lines = [`${nameOf(story, index)} “${label}”, id ${id}${origin}`];
  if (probability !== undefined) lines.push(`probability ${chance(probability)}, rank ${rank}`);
  if (token.windowStart) lines.push(`predicted from token ${token.windowStart} on, where the context begins`);
  if (entropy !== undefined) lines.push(`entropy ${entropy.toFixed(2)} nats = ${(entropy / Math.LN2).toFixed(2)} bits`);
  const weight = looked?.weight(index);
  if (weight != null) lines.push(`attention from ${nameOf(story, looked.query)}: ${chance(weight)}`);
  return lines;
}

/** How the token at a place was chosen, or that it comes next, in words. */
export function howChosen(story, place, isNext) {
  const after = `after “${story.token(place - 1)?.label ?? ""}”`;
  const begin = story.known(place)?.windowStart ?? 0;
  const window = begin ? ` The model reads from token ${begin} on` : "";
  if (isNext) return `Token ${place} comes next, ${after}.${window && `${window}: its context holds ${story.context}.`}`;
  const { label, flag, probability, rank, entropy } = story.token(place);
  const how = flag === "h" ? "chosen by hand" : "chosen";
  const numbers = probability === undefined ? "" : `: probability ${chance(probability)}, rank ${rank}, entropy ${entropy.toFixed(2)} nats`;
  return `Token ${place} “${label}” was ${how} ${after}${numbers}.${window && `${window}.`}`;
}

/** Where a head looked, by index: { query, start, weights, largest, weight(index) }. row: as `Story.row` has it, or null. */
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

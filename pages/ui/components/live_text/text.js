// A text and its numbers, as they come from `data`, and what can be said of each token.

export function percent(p) {
  if (p == null) return "–";
  const value = 100 * p;
  if (value === 0) return "0 %";
  if (value < 0.001) return "<0.001 %";
  return `${value < 1 ? value.toPrecision(2) : value.toFixed(value > 99 && value < 100 ? 2 : 1)} %`;
}

export class Text {
  constructor(data) {
    this.data = data;
    this.length = data.kind.length;
    this.written = [...data.flags].flatMap((flag, index) => (flag === "p" ? [] : [index]));
    this.largest = data.weights?.length ? Math.max(...data.weights) : 0;
  }

  /** The token at an index: what it shows, its label and its id come from the table of distinct tokens. */
  token(index) {
    const { kinds, kind, flags, probability, rank, entropy } = this.data;
    const at = kind[index];
    return {
      shown: kinds.shown[at], label: kinds.label[at], id: kinds.id[at], flag: flags[index],
      probability: probability[index], rank: rank[index], entropy: entropy[index],
    };
  }

  /** The attention that a token gets, or null. */
  weight(index) {
    const { weights, weights_start: start } = this.data;
    return weights?.[index - start] ?? null;
  }

  describe(index) {
    if (index >= this.length || index < 0) return ["the next token, not written yet"];
    const { label, id, flag, probability, rank, entropy } = this.token(index);
    const origin = { p: ", from the prompt", h: ", chosen by hand", w: "" }[flag];
    const lines = [`token ${index} “${label}”, id ${id}${origin}`];
    if (probability != null) lines.push(`probability ${percent(probability)}${rank == null ? "" : `, rank ${rank}`}`);
    if (entropy != null) lines.push(`entropy ${entropy.toFixed(2)} nats = ${(entropy / Math.LN2).toFixed(2)} bits`);
    const weight = this.weight(index);
    if (weight != null) lines.push(`attention from token ${this.data.query}: ${percent(weight)}`);
    return lines;
  }
}

/** The index of the token that an event is about, or null. */
export function indexOf(event) {
  const index = event.target.closest?.("[data-index]")?.dataset.index;
  return index === undefined ? null : Number(index);
}

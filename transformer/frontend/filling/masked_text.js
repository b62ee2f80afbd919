// A text in which words are masked: which are filled in by now, and which the visitor has masked besides.

/**
 * @typedef {{ id: number, probability: number }} Candidate
 * @typedef {Candidate & { candidates: Candidate[] }} Filled with what was expected there
 */

export class MaskedText {
  /**
   * @param {number[]} prompt
   * @param {number} mask the id that stands for what is to be filled in
   */
  constructor(prompt, mask) {
    this.prompt = prompt;
    this.mask = mask;
    /** @type {Map<number, Filled>} */
    this.filled = new Map();
    /** @type {Set<number>} */
    this.hidden = new Set();
    this.before = []; // earlier states, for undo
  }

  /** Token ids as the model reads them now. */
  get ids() {
    return this.prompt.map((id, position) => this.filled.get(position)?.id ?? (this.hidden.has(position) ? this.mask : id));
  }

  isMasked(position) {
    return this.ids[position] === this.mask;
  }

  get isChanged() {
    return this.filled.size > 0 || this.hidden.size > 0;
  }

  /** Fill a mask, or fill it otherwise. */
  fill(position, filled) {
    this.change(() => this.filled.set(position, filled));
  }

  /** Mask a word; one that was filled in becomes the mask that it was. */
  hide(position) {
    this.change(() => {
      if (!this.filled.delete(position)) this.hidden.add(position);
    });
  }

  /** Show a word again that the visitor has masked. */
  show(position) {
    this.change(() => this.hidden.delete(position));
  }

  /** The text as it was typed. */
  clear() {
    this.change(() => {
      this.filled.clear();
      this.hidden.clear();
    });
  }

  undo() {
    const state = this.before.pop();
    if (state) Object.assign(this, state);
  }

  change(act) {
    this.before.push({ filled: new Map(this.filled), hidden: new Set(this.hidden) });
    act();
  }
}

/** The mask whose likeliest token has the highest probability, or null. masks: as the API has them. */
export function surestOf(masks) {
  const best = ({ candidates }) => candidates[0]?.probability ?? 0;
  return masks.reduce((surest, mask) => (surest && best(surest) >= best(mask) ? surest : mask), null);
}

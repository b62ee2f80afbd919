// The instrument of the page Generate for a model that reads in both directions: it fills masked words, the surest
// first, and shows what the model expects at each mask and where a head looks from there.
import { offer, partsOf, put } from "../dom.js";
import { percent } from "../number_format.js";
import { Candidates } from "../generation/candidates.js";
import { TokenStrip } from "../generation/token_strip.js";
import { MARKUP } from "./markup.js";
import { MaskedText, surestOf } from "./masked_text.js";

const PAUSE_MS = 700; // between two masks that are filled one after the other

export class FillingInstrument {
  /** @type {MaskedText} */ text;
  /** @type {{ masks: { position: number, candidates: { id: number, probability: number }[] }[], kinds: Record<string, string[]> }} */ expected;

  /**
   * host: { expect(ids), look(ids, position, layer, head), select(change), inside(position, id), fail(error) }: called for what is expected at the masks
   * of a text, and for a row of a pattern, each a promise; with what is looked at; to leave for the page that shows a logit, where there is one. And fail(error):
   * with why something isn't shown, or null once all is.
   */
  constructor(parent, host) {
    parent.innerHTML = MARKUP; // constant
    const parts = (this.parts = partsOf(parent));
    const { strip, candidates, title, hint } = parts;
    this.host = host;
    this.frozen = false;
    /** @type {number | null} */
    this.separator = null;
    this.strip = new TokenStrip({ strip }, (position) => this.visit(position), () => {});
    this.candidates = new Candidates({ candidates, title, hint }, (id) => this.choose(id));
    parts.fill.addEventListener("click", () => this.fillSurest());
    parts.fillAll.addEventListener("click", () => this.fillAll());
    parts.undo.addEventListener("click", () => this.change(() => this.text.undo()));
    parts.clear.addEventListener("click", () => this.change(() => this.text.clear()));
    parts.hide.addEventListener("click", () => this.hideOrShow());
    parts.inside.hidden = !host.inside;
    parts.inside.addEventListener("click", () => host.inside(this.position, this.shownCandidates[0]?.id ?? this.text.ids[this.position]));
    for (const name of ["layer", "head"]) parts[name].addEventListener("change", () => this.turn({ [name]: Number(parts[name].value) }));
  }

  /**
   * A text. looked: what is looked at, position null for the surest mask; keeps: whether it is the text that is shown.
   *
   * @param {Record<string, any>} about prompt, as ids; mask and separator, the ids that stand for them, the latter null for none; layers and heads, how many; frozen
   * @param {{ layer: number, head: number, position: number | null }} looked
   * @param {{ keeps: boolean }} how
   */
  async begin({ prompt, mask, separator, layers, heads, frozen }, looked, { keeps }) {
    this.stop();
    if (!keeps || !this.text) {
      this.text = new MaskedText(prompt, mask);
      this.expected = null;
    }
    Object.assign(this, { frozen, looked, separator });
    this.lookedAt = null; // the model may be changed
    this.parts.looking.hidden = !layers;
    for (const [name, count] of Object.entries({ layer: layers, head: heads })) offer(this.parts[name], Array.from({ length: count }, (_, number) => [number, `${name} ${number}`]));
    await this.refresh();
  }

  setSelection(looked) {
    this.looked = { ...this.looked, ...looked };
    if (this.expected) this.show();
  }

  // What is shown

  /** The token that is looked at: the visitor's choice, or the surest mask, or the last token. */
  get position() {
    const { position } = this.looked;
    return position !== null && position < this.text.prompt.length ? position : (surestOf(this.expected.masks)?.position ?? this.lastFilled ?? this.text.prompt.length - 1);
  }

  get lastFilled() {
    return [...this.text.filled.keys()].at(-1);
  }

  /** What was expected at the token that is looked at: now, at a mask; when it was filled in, at another. */
  get shownCandidates() {
    const { position } = this;
    return this.expected.masks.find((mask) => mask.position === position)?.candidates ?? this.text.filled.get(position)?.candidates ?? [];
  }

  at(position) {
    const id = this.text.ids[position];
    const [label, shown, first = shown] = this.expected.kinds[id];
    const filled = this.text.filled.get(position);
    return { id, label, shown: position ? shown : first, flag: filled ? "w" : "p", probability: filled?.probability };
  }

  /** Ask what is expected, and show it. */
  async refresh() {
    const asked = (this.asked = {});
    const ids = this.text.ids;
    const expected = await this.host.expect(ids);
    if (this.asked !== asked) return false;
    this.expected = { masks: expected.masks, kinds: { ...this.expected?.kinds, ...expected.kinds } };
    this.show();
    return true;
  }

  show() {
    const { parts, text, position } = this;
    const { masks } = this.expected;
    this.look = this.lookedAt?.key === this.lookKey ? this.lookedAt : null;
    this.strip.update(this, text.prompt.length, this.look && { query: position, weight: (index) => this.look.row[index] }, false);
    this.strip.showSelection(position, false);
    const ends = text.ids.indexOf(this.separator);
    this.strip.spans.forEach((span, index) => {
      span.classList.toggle("mask", text.isMasked(index));
      span.classList.toggle("second", ends >= 0 && index > ends);
    });
    parts.segments.hidden = ends < 0;
    const surest = surestOf(masks);
    const isLocked = this.frozen;
    for (const [name, isOff] of Object.entries({ fill: !surest, fillAll: masks.length < 2, undo: !text.before.length, clear: !text.isChanged })) parts[name].disabled = isLocked || isOff;
    put(parts.fillAll, this.filling ? "Stop" : "Fill all");
    if (this.filling) parts.fillAll.disabled = false;
    put(parts.status, this.status(surest));
    this.showCandidates(isLocked);
    if (parts.looking.hidden) return;
    this.showLook();
  }

  status(surest) {
    const { masks } = this.expected;
    if (!surest) return this.text.isChanged ? "Every mask is filled in. Click a word to look at it, or to mask it." : "No word is masked. Click one, and mask it.";
    const [best] = surest.candidates;
    const token = this.at(surest.position);
    const count = masks.length === 1 ? "One mask" : `${masks.length} masks`;
    return `${count}. ${masks.length === 1 ? "Likeliest there" : "The surest"}: “${this.label(best.id)}”, ${percent(best.probability)}, for ${token.label} at token ${surest.position}.`;
  }

  label(id) {
    return this.expected.kinds[id]?.[0] ?? `#${id}`;
  }

  showCandidates(isLocked) {
    const { parts, text, position } = this;
    const isMasked = text.isMasked(position), filled = text.filled.get(position);
    const here = this.at(position);
    const candidates = this.shownCandidates.map(({ id, probability }) => ({ id, label: this.label(id), probability, sampled: undefined, chosen: id === filled?.id }));
    const title = isMasked ? `Candidates for ${here.label}, token ${position}` : filled ? `Filled in: “${here.label}”, token ${position}` : `“${here.label}”, token ${position}, isn't masked`;
    const hint = isMasked ? "Click one to fill it in." : filled ? "Click another to fill that in instead." : "Here the model sees the word itself. Mask it, and it has to expect it from the words around.";
    this.candidates.update({ title, hint, candidates, locked: isLocked, next: isMasked });
    put(parts.hide, isMasked ? "Show the word again" : filled ? "Mask it again" : "Mask this word");
    parts.hide.hidden = isMasked && !text.hidden.has(position);
    parts.hide.disabled = isLocked;
  }

  get lookKey() {
    return JSON.stringify([this.text.ids, this.position, this.looked.layer, this.looked.head]);
  }

  /** Where the head looks from the token that is looked at, and how much of that lies behind it. */
  async showLook() {
    const { parts, position, looked: { layer, head }, lookKey: key, text } = this;
    Object.assign(parts.layer, { value: String(layer) });
    Object.assign(parts.head, { value: String(head) });
    if (this.look) {
      const { row } = this.look;
      const top = row.indexOf(Math.max(...row)), after = row.slice(position + 1).reduce((sum, weight) => sum + weight, 0);
      const words = `in layer ${layer}, head ${head}: “${this.at(position).label}” looks most at token ${top} “${this.at(top).label}”, ${percent(row[top])}; ${percent(after)} on the words after it`;
      put(parts.largest, words);
      return;
    }
    if (this.looking === key) return;
    this.looking = key;
    const row = await this.host.look(text.ids, position, layer, head).catch((error) => this.host.fail(error));
    if (this.looking !== key) return;
    if (!row) {
      this.looking = null; // it is asked for again with the next that is looked at
      return;
    }
    this.looking = null;
    this.lookedAt = { key, row };
    this.show();
  }

  // What the visitor does

  visit(position) {
    this.looked = { ...this.looked, position };
    this.host.select({ query: position });
    this.show();
  }

  turn(change) {
    this.looked = { ...this.looked, ...change };
    const { layer, head } = this.looked;
    this.host.select({ layer, head });
    this.show();
  }

  hideOrShow() {
    const { position, text } = this;
    this.change(() => (text.isMasked(position) ? text.show(position) : text.hide(position)));
  }

  choose(id) {
    const { position, shownCandidates } = this;
    const { probability } = shownCandidates.find((candidate) => candidate.id === id);
    this.change(() => this.text.fill(position, { id, probability, candidates: shownCandidates }), { stays: true });
  }

  /** Change the text. stays: whether the same token is looked at; if not, the next mask is. */
  change(act, { stays = false } = {}) {
    this.stop();
    act();
    if (!stays) this.looked = { ...this.looked, position: this.looked.position !== null && this.text.isMasked(this.looked.position) ? this.looked.position : null };
    return this.refresh().then((isShown) => {
      this.host.fail(null);
      return isShown;
    }, (error) => {
      this.host.fail(error);
      return false;
    });
  }

  fillSurest() {
    const { position, candidates } = surestOf(this.expected.masks);
    this.looked = { ...this.looked, position };
    return this.change(() => this.text.fill(position, { ...candidates[0], candidates }), { stays: true });
  }

  async fillAll() {
    if (this.filling) return this.stop(true);
    const run = {};
    for (;;) {
      const isDone = this.fillSurest();
      this.filling = run; // `change` has stopped what ran before
      const isShown = await isDone;
      if (this.filling !== run) return;
      if (!isShown || !this.expected.masks.length || !this.parts.root.isConnected) break;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      if (this.filling !== run) return;
    }
    this.stop(true);
  }

  stop(isShown = false) {
    this.filling = null;
    if (isShown) this.show();
  }
}

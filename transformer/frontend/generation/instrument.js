// The instrument of the page Generate: shows the tokens that the engine streams at the visitor's pace, each with its
// candidates, its attention, and how it was sampled. It holds the selection and the text on screen, and tells its host.

import { attribute, partsOf } from "../dom.js";
import { OverwrittenValues, overwrittenValues } from "../overwritten_values.js";
import { sameSettings } from "./sampling.js";
import { MARKUP } from "./markup.js";
import { Playback, rateOf } from "./playback.js";
import { TextView } from "./text_view.js";
import { GeneratedText } from "./generated_text.js";
import { Writer } from "./writer.js";

const WAITING_MS = 1000; // without a token after which the page says that it waits
const FRAME_MS = 1000 / 60;
const SHORT_CONTEXT = 128; // a text that ends within it needs a small box
const EARLY_MS = 4; // a timer may be late, and a frame is missed easily
const SETTINGS = ["temperature", "top_k", "top_p", "seed"];

export class GenerationInstrument {
  /**
   * host: { settingsChanged(settings), select(step), textChanged(), settled(), problem(sentence), inside(position, token) }. settled: the
   * text stays as it is for now; problem: why no token arrives, or empty; inside: opens the page that shows how a logit is computed, and
   * is missing where there is none.
   */
  constructor(parent, host) {
    parent.innerHTML = MARKUP; // constant
    this.parts = partsOf(parent);
    this.host = host;
    this.generated = new GeneratedText();
    this.goal = null; // the length at which writing ends; null at rest
    this.owed = 0; // single steps that still wait for a token
    this.step = null; // the selected position; null: the newest
    this.sourceIndex = null; // the selected token of the source, instead of a position
    this.isFrozen = false; // whether the text can't be changed, because the prompt typed since can't be read
    this.early = null; // the button that was pressed before the text was there
    this.reveal = new Playback();
    this.writer = new Writer({
      changed: (isToken) => this.came(isToken), problem: (sentence) => host.problem(sentence), settings: () => this.settings, whose: () => this.whose,
    });
    this.screen = new TextView(this.parts, {
      select: (position) => this.select(position),
      selectSource: (index) => this.selectSource(index),
      pick: (token) => this.pick(this.position, token),
      back: (to) => this.go(() => this.tree.find(to) && (this.tree.current = this.tree.find(to))),
      compare: (other) => this.compare(other),
      press: (name) => (this.isShown ? this[name]() : (this.early = name)),
      set: (name, value) => this.chosen && this.set(name, value),
      leave: host.inside && ((token) => this.openInside(token)),
    });
  }

  /**
   * Show a text. api: of its pass; about: for `GeneratedText`, and { choices, modules, frozen }, the last as in `isFrozen`; tree: the texts
   * after its prompt; chosen: the settings; step: the selected position, or null; sampling: whether the steps of sampling are open.
   * Resolves once something is on screen.
   */
  async begin(api, about, tree, { chosen, step, sampling = false }) {
    this.stop();
    this.generated = new GeneratedText(about, tree, new Map());
    Object.assign(this, { chosen, step, sourceIndex: null, goal: null, owed: 0, compared: null, aside: null });
    this.isFrozen = Boolean(about.frozen);
    this.modules = about.modules;
    const scaled = String(api.about.changes ?? "").split("!").filter((code) => code.startsWith("scale~"));
    this.changed = new OverwrittenValues(overwrittenValues(null, scaled, 0));
    attribute(this.parts.root, "data-short", String(this.generated.ends.length > 0 && this.generated.context <= SHORT_CONTEXT));
    if (sampling) this.screen.showSampling(true);
    this.screen.controls.offer(about.choices);
    this.screen.controls.show(chosen); // the settings work before the first answer
    this.screen.strip.atEnd = true;
    await this.writer.begin(api, this.generated, about.modules);
    this.generated.name();
    this.isShown = true;
    this.show();
    const { early } = this;
    this.early = null;
    if (early) this[early]();
  }

  /** Select what a link, or another view, says. */
  setSelection({ chosen, step }) {
    if (!this.isShown) return;
    const before = this.chosen;
    Object.assign(this, { chosen: { ...before, ...chosen }, step, sourceIndex: null });
    if (!sameSettings(before, this.chosen)) this.writer.redraw(this.length, this.goal);
    this.show();
  }

  // What is known

  get tree() {
    return this.generated.tree;
  }

  /** Length of the text on screen. */
  get length() {
    return this.tree.current.length;
  }

  get settings() {
    return Object.fromEntries(SETTINGS.map((name) => [name, this.chosen[name]]));
  }

  /** How many tokens the strip shows. */
  get count() {
    return this.generated.before + this.length;
  }

  /** How many tokens have arrived that aren't on screen yet. */
  get there() {
    return this.generated.have - this.length;
  }

  get isLive() {
    return this.goal !== null;
  }

  /** Whether the text on screen ends with an end token. */
  get isOver() {
    const { generated } = this;
    return generated.ended && this.length === generated.have;
  }

  /** Whether the next token has yet to be drawn, as after a setting was changed. */
  get isStale() {
    return !this.there && !this.isOver && !this.isLive;
  }

  /** Whether a position has a token that the model could predict from others. */
  isPredicted(position) {
    return position > 0 && position < this.length;
  }

  /**
   * The position that is looked at: the visitor's choice; else the newest while writing, and then the one to come; of a text that
   * has ended its last token before the one that says so, if there is one.
   */
  get position() {
    if (this.step !== null && this.isPredicted(this.step)) return this.step;
    if (this.isOver) return Math.max(this.length - 2, this.generated.start);
    return this.isLive && this.length > this.generated.start ? this.length - 1 : this.length;
  }

  /** The selected [attention, layer, head]; null for a model without attention. */
  get whose() {
    const { attention, layer, head } = this.chosen;
    return attention === null ? null : [attention, layer, head];
  }

  /** Whether the selected head is ablated. */
  get isAblated() {
    const { attention, layer, head } = this.chosen;
    return attention !== null && this.changed.isAblated(this.modules[attention][layer], head);
  }

  isRefused(whose, position) {
    return this.writer.isRefused(whose, position);
  }

  /** What the screen reads of branches. */
  get offered() {
    return { branches: this.tree.listed((id) => this.generated.kind(id)), can_undo: this.tree.current.parent !== null };
  }

  // What comes

  /** isToken: a token has arrived; it is shown when it is due, perhaps hundreds of tokens later. */
  came(isToken = false) {
    if (!this.isShown) return;
    if (this.isLive && isToken) {
      if (this.there === 1) this.run(); // the page was waiting for it
      return;
    }
    const steps = Math.min(this.owed, this.there);
    if (steps > 0) this.advance(steps);
    if (this.isLive && this.writer.hasFailed && !this.there) this.goal = null;
    this.show();
    if (this.isLive) this.run();
  }

  // What is done

  generate(goal = this.length + this.chosen.tokens) {
    if (this.isLive || this.isOver || this.isFrozen || goal <= this.length) return;
    this.lookAt(null);
    this.owed = 0;
    this.aside = null;
    this.goal = goal;
    this.screen.strip.atEnd = true;
    this.reveal.restart();
    this.shownAt = performance.now();
    this.writer.ensure(this.goal + 1);
    this.show();
    this.run();
  }

  writeOne() {
    if (this.isLive || this.isOver || this.isFrozen) return;
    this.lookAt(null);
    this.aside = null;
    this.owed += 1;
    if (this.there >= this.owed) this.advance(this.owed);
    this.writer.ensure(this.length + this.owed + 1);
    this.show();
    this.host.settled();
  }

  advance(tokens) {
    this.tree.current.seen += tokens;
    this.owed -= tokens;
    if (this.isOver) this.owed = 0;
    this.host.textChanged();
  }

  /** Stop writing; what is on screen stays. */
  stop() {
    if (!this.isLive) return;
    this.goal = null;
    this.writer.halt();
    if (!this.there && !this.isOver) this.writer.ensure(this.length + 1);
    this.show();
    this.host.settled();
  }

  clear() {
    const { current } = this.tree;
    this.go(() => current.seen && this.branchOff([], this.generated.tokens.slice(0, 1).filter(({ flag }) => flag === "w")));
  }

  undo() {
    this.go(() => this.tree.takeBack());
  }

  /** Put a token at a position by hand: in a new branch, if another one is on screen there. */
  pick(position, id) {
    const { generated, tree: { current } } = this;
    const index = position - generated.start;
    if (index < 0 || index > current.seen || (index === current.seen && this.isOver)) return;
    if (index < current.tokens.length && current.tokens[index].id === id && index === current.seen) {
      this.go(() => (current.seen += 1));
      return;
    }
    const picked = generated.picked(position, id);
    this.go(() => {
      const tokens = [...current.tokens.slice(0, index), picked];
      if (index < current.seen) this.branchOff(tokens);
      else Object.assign(current, { tokens, seen: tokens.length });
    });
  }

  /** Begin a branch with these tokens; the former text keeps its own. */
  branchOff(tokens, ahead) {
    const { id } = this.tree.current;
    this.tree.grow(tokens, ahead);
    this.aside = { id };
  }

  /** Do what puts another text or branch on screen, then ask for what is missing of it. */
  go(act) {
    this.writer.halt();
    const before = this.tree.current.written;
    this.goal = null;
    this.lookAt(null);
    this.owed = 0;
    this.aside = null;
    act();
    this.generated.name(); // tokens of a link or a reload have no names yet
    const { current } = this.tree;
    let shared = 0;
    while (shared < Math.min(before.length, current.seen) && before[shared].id === current.tokens[shared].id) shared += 1;
    this.generated.next = null;
    this.generated.forgetRows(this.generated.start + shared);
    this.writer.refused.clear();
    this.compared = null;
    const unknown = current.tokens.findIndex(({ probability }) => probability === undefined);
    const isStale = this.there > 0 && !sameSettings(current.tokens[current.seen].settings, this.settings);
    if (isStale) this.generated.dropAhead(this.length);
    if (unknown >= 0 || (!this.there && !this.isOver)) this.writer.scoreAgain(unknown < 0 ? this.generated.have : this.generated.start + unknown);
    this.show();
    this.host.textChanged();
    this.host.settled();
  }

  compare(other) {
    const branch = other === null ? null : this.tree.find(other);
    const { written } = this.tree.current;
    let first = 0;
    while (branch && first < Math.min(written.length, branch.seen) && written[first].id === branch.tokens[first].id) first += 1;
    const tokens = branch?.written.slice(first).map((token, at) => this.generated.asShown(token, first + at));
    this.compared = branch && { other, first: this.generated.start + first, tokens };
    this.show();
    if (tokens?.some(({ probability }) => probability === undefined)) this.rate(branch, this.compared);
  }

  /** Score a compared branch that came from a link or a reload. */
  async rate(branch, compared) {
    const scores = await this.writer.scoresOf(branch.written, compared.first);
    if (!scores || this.compared !== compared) return;
    const { probability, rank } = scores.tensors;
    compared.tokens = compared.tokens.map((token, at) => ({ ...token, probability: probability.data[at], rank: rank.data[at] }));
    this.show();
  }

  set(name, value) {
    this.chosen = { ...this.chosen, [name]: value };
    this.screen.controls.show(this.chosen);
    if (SETTINGS.includes(name)) this.writer.redraw(this.length, this.goal);
    this.show();
    const { layer, head } = this.chosen;
    this.host.settingsChanged(["layer", "head"].includes(name) ? { layer, head } : { [name]: value });
  }

  /** position: of a token that the model predicted, or the one after the text. */
  select(position) {
    const step = this.isPredicted(position) ? position : null;
    if (step === this.step && this.sourceIndex === null) return;
    this.lookAt(step);
    this.show();
  }

  selectSource(index) {
    this.sourceIndex = index;
    this.show();
  }

  lookAt(position) {
    this.step = position;
    this.sourceIndex = null;
    this.host.select(position);
  }

  /** Open the page that shows how a token's logit at this position is computed. */
  openInside(token) {
    this.stop();
    this.host.inside(this.position, token, this.generated.known(this.position)?.windowStart ?? 0);
  }

  // The clock

  // Request no frame in which nothing is due: the browser would lay out and draw the page for it.
  run() {
    clearTimeout(this.timer);
    this.frame ??= requestAnimationFrame((now) => {
      this.frame = null;
      if (!this.parts.root.isConnected) {
        this.goal = null;
        this.writer.halt();
        return;
      }
      this.tick(now);
      if (!this.isLive) return;
      this.screen.strip.blink(now);
      const idle = this.reveal.idle(performance.now());
      if (idle < FRAME_MS + EARLY_MS) this.run();
      else this.timer = setTimeout(() => this.run(), idle - EARLY_MS);
    });
  }

  tick(now) {
    if (!this.isLive) return;
    const there = Math.min(this.there, this.goal - this.length);
    const count = this.reveal.due(now, there, rateOf(this.chosen.pace, there));
    if (count) {
      this.tree.current.seen += count;
      this.shownAt = now;
      this.host.textChanged();
    }
    if (this.length >= this.goal || this.isOver) {
      this.stop();
      return;
    }
    if (count || this.isWaiting !== this.screen.saysWaiting) this.show();
  }

  // What is shown

  get isWaiting() {
    return this.isLive && performance.now() - this.shownAt > WAITING_MS;
  }

  show() {
    if (!this.isShown) return;
    this.screen.show(this);
    this.writer.look(this.whose, this.position);
  }

  /** Redraw: the page has another size or other colours. */
  draw() {
    if (this.isShown) this.screen.draw();
  }
}

// A text as a model writes it: the engine streams tokens, and here they are shown at the visitor's pace, each with its candidates,
// where it looked, and how it was drawn. What is looked at, and which text is on screen, is decided here; the host is told.

import { partsOf } from "../dom.js";
import { sameDials } from "./sampling.js";
import { MARKUP } from "./markup.js";
import { Playback, rateOf } from "./playback.js";
import { TextView } from "./text_view.js";
import { GeneratedText } from "./generated_text.js";
import { Writer } from "./writer.js";

const WAITING_MS = 1000; // without a token for so long, the model is waited for
const FRAME_MS = 1000 / 60;
const EARLY_MS = 4; // a timer may be late, and a frame is missed easily
const DIALS = ["temperature", "top_k", "top_p", "seed"];

export class WritingInstrument {
  /**
   * host: { chose(chosen), look(step), wrote(), rests(), problem(sentence), inside(place, token) }: told which dials were turned,
   * which place is looked at, that the text has changed, and that it stays as it is for now; why nothing comes, or empty; inside:
   * leave for the page that shows how a logit came about; missing where there is none.
   */
  constructor(parent, host) {
    parent.innerHTML = MARKUP; // constant
    this.parts = partsOf(parent);
    this.host = host;
    this.story = new GeneratedText();
    this.goal = null; // at which length the present writing ends; null at rest
    this.owed = 0; // single steps that wait for their tokens
    this.step = null; // the place that is looked at; null: the newest
    this.early = null; // the button that was pressed before there was a text
    this.reveal = new Playback();
    this.writer = new Writer({
      changed: () => this.came(), problem: (sentence) => host.problem(sentence), dials: () => this.dials, whose: () => this.whose,
    });
    this.screen = new TextView(this.parts, {
      select: (place) => this.select(place),
      pick: (token) => this.pick(this.place, token),
      back: (to) => this.go(() => this.tree.find(to) && (this.tree.current = this.tree.find(to))),
      compare: (other) => this.compare(other),
      press: (name) => (this.isShown ? this[name]() : (this.early = name)),
      turn: (name, value) => this.chosen && this.turn(name, value),
      leave: host.inside && ((token) => this.openInside(token)),
    });
  }

  /**
   * A text. api: of its pass; about: as `GeneratedText` takes it, and { choices, modules }; tree: the texts after its prompt; chosen: what the
   * dials say; step: the place that is looked at, or null; sampling: whether the drawing of tokens is to be seen. Resolves once there
   * is something to be seen.
   */
  async begin(api, about, tree, { chosen, step, sampling = false }) {
    this.stop();
    this.story = new GeneratedText(about, tree, new Map());
    Object.assign(this, { chosen, step, goal: null, owed: 0, compared: null, aside: null });
    if (sampling) this.screen.showSampling(true);
    this.screen.controls.offer(about.choices);
    this.screen.controls.show(chosen); // they can be turned while the first answer is waited for
    this.screen.strip.atEnd = true;
    await this.writer.begin(api, this.story, about.modules);
    this.story.name();
    this.isShown = true;
    this.show();
    const { early } = this;
    this.early = null;
    if (early) this[early]();
  }

  /** What somebody else has decided to look at, for example a link. */
  turnTo({ chosen, step }) {
    if (!this.isShown) return;
    const before = this.chosen;
    Object.assign(this, { chosen: { ...before, ...chosen }, step });
    if (!sameDials(before, this.chosen)) this.writer.redraw(this.length, this.goal);
    this.show();
  }

  // What is known

  get tree() {
    return this.story.tree;
  }

  /** Of the text that is seen. */
  get length() {
    return this.tree.current.length;
  }

  get dials() {
    return Object.fromEntries(DIALS.map((name) => [name, this.chosen[name]]));
  }

  /** How many tokens are seen in the strip. */
  get count() {
    return this.story.before + this.length;
  }

  /** How many tokens have come that can be shown next. */
  get there() {
    return this.story.have - this.length;
  }

  get isLive() {
    return this.goal !== null;
  }

  /** Whether the text has ended with the token that says so. */
  get isOver() {
    const { story } = this;
    return story.ended && this.length === story.have;
  }

  /** Whether the token that comes next has yet to be drawn by the present dials. */
  get isStale() {
    return !this.there && !this.isOver && !this.isLive;
  }

  isWritten(place) {
    return place >= this.story.start && place < this.length;
  }

  /** The place that is looked at: the visitor's choice; else the newest while writing, and then the one to come. */
  get place() {
    if (this.step !== null && this.isWritten(this.step)) return this.step;
    const atNewest = this.isOver || (this.isLive && this.length > this.story.start);
    return atNewest ? this.length - 1 : this.length;
  }

  /** [attention, layer, head] that is looked at, or null for a model without. */
  get whose() {
    const { attention, layer, head } = this.chosen;
    return attention === null ? null : [attention, layer, head];
  }

  get isAsking() {
    return false; // what changes the text is done here and now
  }

  isRefused(whose, place) {
    return this.writer.isRefused(whose, place);
  }

  /** What the screen reads of branches. */
  get offered() {
    return { branches: this.tree.listed((id) => this.story.kind(id)), can_undo: this.tree.current.parent !== null };
  }

  // What comes

  came() {
    if (!this.isShown) return;
    const steps = Math.min(this.owed, this.there);
    if (steps > 0) this.advance(steps);
    if (this.isLive && this.writer.hasFailed && !this.there) this.goal = null;
    this.show();
    if (this.isLive) this.run();
  }

  // What is done

  /** goal: the length at which the writing ends. */
  generate(goal = this.length + this.chosen.tokens) {
    if (this.isLive || this.isOver || goal <= this.length) return;
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

  once() {
    if (this.isLive || this.isOver) return;
    this.lookAt(null);
    this.aside = null;
    this.owed += 1;
    if (this.there >= this.owed) this.advance(this.owed);
    this.writer.ensure(this.length + this.owed + 1);
    this.show();
    this.host.rests();
  }

  advance(tokens) {
    this.tree.current.seen += tokens;
    this.owed -= tokens;
    if (this.isOver) this.owed = 0;
    this.host.wrote();
  }

  /** Write no more: what is seen stays. */
  stop() {
    if (!this.isLive) return;
    this.goal = null;
    this.writer.halt();
    if (!this.there && !this.isOver) this.writer.ensure(this.length + 1);
    this.show();
    this.host.rests();
  }

  clear() {
    const { current } = this.tree;
    this.go(() => current.seen && this.branchOff([], this.story.tokens.slice(0, 1).filter(({ flag }) => flag === "w")));
  }

  undo() {
    this.go(() => this.tree.takeBack());
  }

  /** Put a token of the visitor's choice at a place: in a branch of its own where another was seen there. */
  pick(place, id) {
    const { story, tree: { current } } = this;
    const index = place - story.start;
    if (index < 0 || index > current.seen || (index === current.seen && this.isOver)) return;
    if (index < current.tokens.length && current.tokens[index].id === id && index === current.seen) {
      this.go(() => (current.seen += 1));
      return;
    }
    const picked = story.picked(place, id);
    this.go(() => {
      const tokens = [...current.tokens.slice(0, index), picked];
      if (index < current.seen) this.branchOff(tokens);
      else Object.assign(current, { tokens, seen: tokens.length });
    });
  }

  /** Begin a branch with these tokens; the text as it was stays in its own. */
  branchOff(tokens, ahead) {
    const { id } = this.tree.current;
    this.tree.grow(tokens, ahead);
    this.aside = { id };
  }

  /** Do what brings another text on screen, or another branch; then what is missing of that is asked for. */
  go(act) {
    this.writer.halt();
    const before = this.tree.current.written;
    this.goal = null;
    this.lookAt(null);
    this.owed = 0;
    this.aside = null;
    act();
    this.story.name(); // what a link or a reload has brought has no names yet
    const { current } = this.tree;
    let shared = 0;
    while (shared < Math.min(before.length, current.seen) && before[shared].id === current.tokens[shared].id) shared += 1;
    this.story.next = null;
    this.story.forgetRows(this.story.start + shared);
    this.writer.refused.clear();
    this.compared = null;
    const unknown = current.tokens.findIndex(({ probability }) => probability === undefined);
    const isStale = this.there > 0 && !sameDials(current.tokens[current.seen].dials, this.dials);
    if (isStale) this.story.dropAhead(this.length);
    if (unknown >= 0 || (!this.there && !this.isOver)) this.writer.scoreAgain(unknown < 0 ? this.story.have : this.story.start + unknown);
    this.show();
    this.host.wrote();
    this.host.rests();
  }

  compare(other) {
    const branch = other === null ? null : this.tree.find(other);
    const { written } = this.tree.current;
    let first = 0;
    while (branch && first < Math.min(written.length, branch.seen) && written[first].id === branch.tokens[first].id) first += 1;
    const tokens = branch?.written.slice(first).map((token, at) => this.story.asShown(token, first + at));
    this.compared = branch && { other, first: this.story.start + first, tokens };
    this.show();
    if (tokens?.some(({ probability }) => probability === undefined)) this.rate(branch, this.compared);
  }

  /** Have what the engine thinks of a branch that a link or a reload has brought, while it is compared. */
  async rate(branch, compared) {
    const scores = await this.writer.scoresOf(branch.written, compared.first);
    if (!scores || this.compared !== compared) return;
    const { probability, rank } = scores.tensors;
    compared.tokens = compared.tokens.map((token, at) => ({ ...token, probability: probability.data[at], rank: rank.data[at] }));
    this.show();
  }

  turn(name, value) {
    this.chosen = { ...this.chosen, [name]: value };
    this.screen.controls.show(this.chosen);
    if (DIALS.includes(name)) this.writer.redraw(this.length, this.goal);
    this.show();
    this.host.chose({ [name]: value });
  }

  select(place) {
    if (place === this.step) return;
    this.lookAt(place);
    this.show();
  }

  lookAt(place) {
    this.step = place;
    this.host.look(place);
  }

  /** Leave for the logits that the token at this place was drawn from, and for one of them. */
  openInside(token) {
    this.stop();
    this.host.inside(this.place, token, this.story.known(this.place)?.windowStart ?? 0);
  }

  // The clock

  // A frame in which nothing is due isn't asked for: the browser would lay out and draw the page for it.
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
      this.host.wrote();
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
    this.writer.look(this.whose, this.place);
  }

  /** Draw again, in the page's present size and colours. */
  draw() {
    if (this.isShown) this.screen.draw();
  }
}

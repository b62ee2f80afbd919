// A text as a model writes it: the server computes tokens ahead, and here they are shown at the visitor's pace, each with its
// candidates, where it looked, and how it was drawn. What is looked at is decided here; the host is told, and asked only for
// what has to be computed or remembered.

import { partsOf } from "../dom.js";
import { sameDials } from "./draw.js";
import { MARKUP } from "./markup.js";
import { Chunks, Reveal } from "./reveal.js";
import { Screen } from "./screen.js";
import { Story } from "./story.js";

const WAITING_MS = 1000; // without a token for so long, the model is waited for
const FRAME_MS = 1000 / 60;
const EARLY_MS = 4; // a timer may be late, and a frame is missed easily
const AROUND = 100; // places before and after the one that is looked at, whose rows are asked for with its own
const DIALS = ["temperature", "top_k", "top_p", "seed"];

export class WritingInstrument {
  /**
   * host: { act(name, more), report(), note(), isHeard() }: an event that something has to be done for; the hand has changed what
   * Python should know when it rests; it should know by the time the visitor turns to something else; nothing is unanswered.
   * turn(): leave for the page that shows how a logit came about; missing where there is none.
   */
  constructor(parent, host) {
    parent.innerHTML = MARKUP; // constant
    this.parts = partsOf(parent);
    this.host = host;
    this.story = new Story();
    this.length = 0; // of the text that is seen
    this.goal = null; // at which length the present writing ends; null at rest
    this.owed = 0; // single steps that wait for their tokens
    this.step = null; // the place that is looked at; null: the newest
    this.reveal = new Reveal();
    this.chunks = new Chunks();
    this.screen = new Screen(this.parts, {
      select: (place) => this.select(place),
      pick: (token) => this.pick(this.place, token),
      back: (to) => this.ask("branch", { to }),
      compare: (other) => this.compare(other),
      press: (name) => this.chosen && this[name](),
      turn: (name, value) => this.chosen && this.turn(name, value),
      leave: host.turn && ((token) => this.openInside(token)),
    });
  }

  // What is known

  /** How many tokens are seen in the strip. */
  get count() {
    return this.story.before + this.length;
  }

  /** How many tokens have come that can be shown next: none that was drawn by other dials. */
  get there() {
    return this.isStale ? 0 : this.story.have - this.length;
  }

  get isLive() {
    return this.goal !== null;
  }

  /** Whether the text has ended with the token that says so. */
  get isOver() {
    const { story } = this;
    return story.ended && !this.isStale && this.length === story.have && this.length > story.start;
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

  /** What an event tells, whatever it is about. count: its own, which makes tokens that come for an earlier one stale. */
  state(count) {
    if (!sameDials(this.chosen, this.told)) {
      this.told = Object.fromEntries(DIALS.map((name) => [name, this.chosen[name]]));
      this.staleUntil = count;
    }
    const { story, length, chosen, step, offered: { id, branch } } = this;
    const isKnown = id === story.id && branch === story.branch;
    const [seen, have] = isKnown ? [length, this.isStale ? length : story.have] : [0, 0];
    return { id, branch, seen, have, controls: chosen, step };
  }

  get isStale() {
    return this.staleUntil !== undefined;
  }

  // What comes

  /** A message. turn: its controls and place replace those that are here. Returns false if the whole text has to be sent. */
  take(recording, turn) {
    const { metadata, tensors } = recording;
    const { story } = this;
    const isOther = metadata.id !== story.id || metadata.branch !== story.branch;
    // Sent before Python had heard of other dials: what is ahead in it won't be written.
    const isLate = !isOther && this.isStale && metadata.heard < this.staleUntil;
    if (!isLate) this.staleUntil = undefined;
    else if (!metadata.whole) delete tensors.ids;
    const count = tensors.ids?.data.length ?? 0;
    this.offered = metadata;
    const turns = turn || !this.chosen;
    if (turns) this.chosen = this.told = metadata.controls;
    if (!story.take(recording)) return false;
    if (isOther) this.begin();
    if (turns) this.step = metadata.step;
    else if (isOther) this.host.report(); // what is chosen here may not be known there
    this.length = Math.min(Math.max(isOther ? 0 : this.length, metadata.length, story.start), story.have);
    if (metadata.choices) this.screen.controls.offer(metadata.choices);
    this.takeCompared(recording);
    if (count && this.isLive) this.chunks.arrived(performance.now(), this.there);
    const steps = Math.min(this.owed, this.there);
    if (steps > 0) this.advance(steps);
    this.show();
    if (this.isLive) this.run();
    return true;
  }

  /** Another text, or another branch. */
  begin() {
    this.goal = null;
    this.owed = 0;
    this.length = 0;
    this.compared = null;
    this.refused = null;
    this.step = null;
    this.screen.strip.atEnd = true;
  }

  takeCompared({ metadata: { compared }, tensors }) {
    const ids = tensors["other.ids"]?.data;
    if (!compared || !ids) return;
    const [probability, rank, entropy] = ["probability", "rank", "entropy"].map((name) => tensors[`other.${name}`].data);
    const tokens = Array.from(ids, (id, at) => (
      { ...this.story.named(id, "w", false), probability: probability[at], rank: rank[at], entropy: entropy[at] }));
    this.compared = { other: compared.with, first: compared.first, tokens };
  }

  // What is done

  generate() {
    if (this.isLive || this.isOver) return;
    this.step = null;
    this.owed = 0;
    this.goal = this.length + this.chosen.tokens;
    this.screen.strip.atEnd = true;
    this.reveal.restart();
    this.chunks.begin();
    this.shownAt = performance.now();
    this.write();
    this.show();
    this.run();
  }

  write() {
    this.chunks.asked(performance.now());
    this.host.act("write", { goal: this.goal });
  }

  once() {
    if (this.isLive || this.isOver) return;
    this.step = null;
    this.owed += 1;
    if (this.there >= this.owed) this.advance(this.owed);
    // What was ahead is seen now: there has to be another.
    this.host.act("write", { goal: this.length + this.owed });
    this.show();
  }

  advance(tokens) {
    this.length += tokens;
    this.owed -= tokens;
    if (this.isOver) this.owed = 0;
  }

  /** Write no more: what is seen stays. */
  stop() {
    if (!this.isLive) return;
    this.goal = null;
    this.host.act("stop");
    this.show();
  }

  clear() {
    this.ask("clear");
  }

  undo() {
    this.ask("undo");
  }

  pick(place, token) {
    this.ask("pick", { place, token });
  }

  /** Something that another text, or another branch, comes of: nothing else is asked for until it has come. */
  ask(name, more) {
    if (this.isAsking) return;
    this.goal = this.step = null;
    this.owed = 0;
    this.asked = true;
    this.host.act(name, more);
    this.show();
  }

  /** Whether what was asked for has yet to come. */
  get isAsking() {
    if (this.asked && this.host.isHeard()) this.asked = false;
    return Boolean(this.asked);
  }

  compare(other) {
    if (other !== null) this.host.act("compare", { with: other });
    this.compared = null;
    this.show();
  }

  turn(name, value) {
    this.chosen = { ...this.chosen, [name]: value };
    this.show();
    this.host.report();
  }

  select(place) {
    if (place === this.step) return;
    this.step = place;
    this.show();
    this.host.report();
  }

  /** Leave for the logits that the token at this place was drawn from, and for one of them. */
  openInside(token) {
    this.host.act("inside", { place: this.place, token });
    this.host.turn();
  }

  /** The visitor leaves the page. */
  leave() {
    this.stop();
  }

  // The clock

  // A frame in which nothing is due isn't asked for: the browser would lay out and draw the page for it.
  run() {
    clearTimeout(this.timer);
    this.frame ??= requestAnimationFrame((now) => {
      this.frame = null;
      if (!this.parts.root.isConnected) return;
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
    const { pace } = this.chosen;
    const rate = this.chunks.rate(pace, this.isMissing);
    const count = this.reveal.due(now, Math.min(this.there, this.goal - this.length), rate);
    if (count) {
      this.length += count;
      this.shownAt = now;
      this.host.note();
    }
    if (this.length >= this.goal || this.isOver) {
      this.stop();
      return;
    }
    if ((this.isMissing || this.isStale) && this.host.isHeard() && this.chunks.isDue(now, this.there, pace)) this.write();
    if (count || this.isWaiting !== this.screen.saysWaiting) this.show();
  }

  // What is shown

  /** Whether the text that was asked for isn't all there. */
  get isMissing() {
    return this.there < this.goal - this.length && !this.story.ended;
  }

  get isWaiting() {
    return this.isLive && performance.now() - this.shownAt > WAITING_MS;
  }

  show() {
    if (!this.chosen || this.story.id === undefined) return;
    this.screen.show(this);
    this.wantMore(this.whose, this.place);
  }

  /** Draw again, in the page's present size and colours. */
  draw() {
    this.screen.draw();
  }

  // What has to be fetched

  /** Ask for what is missing of the place that is looked at, once nothing else is asked for. */
  wantMore(whose, place) {
    const { story } = this;
    if (!story.token(place) || !this.host.isHeard()) return;
    if (whose && !story.row(whose, place) && !this.isRefused(whose, place)) {
      const [first, last] = [Math.max(story.start, place - AROUND), Math.min(story.have - 1, place + AROUND)];
      const alone = this.refused?.whole === `${whose},${place}`;
      this.refused = { [alone ? "alone" : "whole"]: `${whose},${place}` };
      this.host.act("rows", alone ? { first: place, last: place } : { first, last });
    } else if (!story.logits(place) && this.lacking !== place) {
      this.lacking = place; // asked for once
      this.host.act("logits", { place });
    }
  }

  /** Whether a row was asked for by itself, and hasn't come. */
  isRefused(whose, place) {
    return this.refused?.alone === `${whose},${place}`;
  }

}

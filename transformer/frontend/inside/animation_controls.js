// Draws the controls of Play, the animation of a pass, and runs its clock.

import { attribute, button, node, put } from "../dom.js";
import { mayMove } from "./transition.js";
import { endOf, isAtEnd, momentAt, stepFrom, timeOf } from "./animation.js";

const LONGEST_FRAME = 100; // milliseconds: what takes longer, as while the tab is hidden, is not caught up with

export class AnimationControls {
  /** @type {(moment: number | null, isResting?: boolean) => void} */ moved;
  /** @type {() => number} */ count;
  /** @type {number | null} */ moment;
  /** @type {HTMLElement} */ line;
  /** @type {number | undefined} */ frame;

  /** moved(moment, isResting): the time is another; null once Play is left. count(): how many chapters there are. */
  constructor(parent, line, { moved, count }) {
    Object.assign(this, { moved, count, moment: null, line });
    this.back = button(parent, "‹", () => this.step(-1), { words: "Back one step (left arrow)", className: "control" });
    this.toggle = button(parent, "Play", () => this.toggled(), { words: "Play or pause the pass (space)", className: "control start" });
    this.on = button(parent, "›", () => this.step(1), { words: "On one step (right arrow)", className: "control" });
    this.slider = node("input", "", parent);
    Object.assign(this.slider, { type: "range", min: "0", step: "0.01", value: "0" });
    attribute(this.slider, "aria-label", "Where in the pass");
    this.slider.addEventListener("input", () => {
      this.stop();
      this.goTo(Math.min(Number(this.slider.value), endOf(this.count() - 1)), true);
    });
    this.leaver = button(parent, "×", () => this.leave(), { words: "Leave Play (Escape)", className: "control" });
    this.show("");
  }

  get isRunning() {
    return this.frame !== undefined;
  }

  toggled() {
    if (this.isRunning) {
      this.stop();
      this.moved(this.moment, true);
    } else this.start();
  }

  // Where nothing may move, a press leads to the end of the next chapter.
  start() {
    const count = this.count();
    const from = this.moment === null || isAtEnd(this.moment, count) ? 0 : this.moment;
    if (!mayMove()) {
      this.goTo(stepFrom(from, 1, count), true);
      return;
    }
    let [time, before] = [timeOf(from, count), performance.now()];
    const tick = (now) => {
      time += Math.min(LONGEST_FRAME, Math.max(0, now - before));
      before = now;
      const moment = momentAt(time, count);
      const isLast = isAtEnd(moment, count);
      this.frame = isLast ? undefined : requestAnimationFrame(tick);
      if (moment !== this.moment) this.goTo(moment, isLast); // while it rests there is nothing to draw
    };
    this.frame = requestAnimationFrame(tick);
  }

  stop() {
    if (this.isRunning) cancelAnimationFrame(this.frame);
    this.frame = undefined;
  }

  step(by) {
    this.stop();
    this.goTo(this.moment === null ? endOf(0) : stepFrom(this.moment, by, this.count()), true);
  }

  leave() {
    this.stop();
    this.goTo(null, true);
  }

  goTo(moment, isResting) {
    this.moment = moment;
    this.moved(moment, isResting);
  }

  /** Somebody else has set the time: a link. */
  set(moment) {
    if (moment === this.moment) return;
    this.stop();
    this.moment = moment;
  }

  /** sentence: what happens in the chapter. */
  show(sentence) {
    const isOff = this.moment === null;
    put(this.toggle, this.isRunning ? "Pause" : "Play");
    for (const part of [this.back, this.on, this.slider, this.leaver]) part.hidden = isOff;
    this.line.hidden = isOff;
    put(this.line, sentence);
    this.slider.max = String(this.count());
    if (!isOff && this.slider.value !== String(this.moment)) this.slider.value = String(this.moment);
  }
}

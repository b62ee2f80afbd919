// The controls of Play, and the clock: a chapter runs to its end and waits there for the next key.

import { attribute, node, put } from "../dom.js";
import { CHAPTER_MS, endOf, stepFrom } from "./scene.js";

const HINT = "Click to zoom in, Escape to zoom out. Space plays the pass.";

export class Play {
  /** @type {(moment: number | null, isResting?: boolean) => void} */ moved;
  /** @type {() => number} */ count;
  /** @type {number | null} */ moment;
  /** @type {HTMLElement} */ line;
  /** @type {number | undefined} */ frame;

  /** moved(moment, isResting): the time is another; null once Play is left. count(): how many chapters there are. */
  constructor(parent, line, { moved, count }) {
    Object.assign(this, { moved, count, moment: null, line });
    const button = (words, title, press) => {
      const made = node("button", "control", parent);
      made.type = "button";
      put(made, title);
      attribute(made, "aria-label", words);
      made.title = words;
      made.addEventListener("click", press);
      return made;
    };
    this.back = button("Back one step (left arrow)", "‹", () => this.step(-1));
    this.toggle = button("Play the next step (space)", "Play", () => this.toggled());
    this.on = button("On one step (right arrow)", "›", () => this.step(1));
    this.slider = node("input", "", parent);
    Object.assign(this.slider, { type: "range", min: "0", step: "0.01", value: "0" });
    attribute(this.slider, "aria-label", "Where in the pass");
    this.slider.addEventListener("input", () => {
      this.stop();
      this.turnTo(Math.min(Number(this.slider.value), endOf(this.count() - 1)), true);
    });
    this.leaver = button("Leave Play (Escape)", "×", () => this.leave());
    this.show("");
  }

  get isRunning() {
    return this.frame !== undefined;
  }

  get isStill() {
    return matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  toggled() {
    if (this.isRunning) {
      this.stop();
      this.moved(this.moment, true);
    } else this.start();
  }

  start() {
    const next = this.moment === null ? 0 : this.moment;
    const last = this.count() - 1;
    const isDone = this.moment !== null && this.moment >= endOf(Math.floor(next)) - 1e-9;
    const from = !isDone ? next : Math.floor(next) >= last ? 0 : Math.floor(next) + 1;
    const end = endOf(Math.floor(from));
    if (this.isStill) {
      this.turnTo(end, true);
      return;
    }
    const begun = performance.now();
    const tick = (now) => {
      const moment = Math.min(end, from + Math.max(0, now - begun) / CHAPTER_MS);
      this.frame = moment < end ? requestAnimationFrame(tick) : undefined;
      this.turnTo(moment, moment >= end);
    };
    this.frame = requestAnimationFrame(tick);
  }

  stop() {
    if (this.isRunning) cancelAnimationFrame(this.frame);
    this.frame = undefined;
  }

  step(by) {
    this.stop();
    this.turnTo(this.moment === null ? endOf(0) : stepFrom(this.moment, by, this.count()), true);
  }

  leave() {
    this.stop();
    this.turnTo(null, true);
  }

  turnTo(moment, isResting) {
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
    put(this.toggle, this.isRunning ? "Stop" : "Play");
    for (const part of [this.back, this.on, this.slider, this.leaver]) part.hidden = isOff;
    put(this.line, isOff ? HINT : sentence);
    attribute(this.line, "data-off", String(isOff));
    this.slider.max = String(this.count());
    if (!isOff && this.slider.value !== String(this.moment)) this.slider.value = String(this.moment);
  }
}

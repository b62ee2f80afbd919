// Shows how far a long computation is, and lets it be stopped. One of a large model begins when it is asked for.

import { attribute, button, node, put } from "../dom.js";
/** @import { StreamEvent } from "../api.js" */

const SHOWN_AFTER_MS = 400; // what takes no longer needs no bar

export class LongRequest {
  /** @type {AbortController | null} */ ending = null;
  /** @type {Set<string>} */ begun = new Set(); // what was asked for
  wasStopped = false;

  /** @param {HTMLElement} parent @param {{ ask: string, does: string }} words ask: the button's; does: what is done meanwhile */
  constructor(parent, { ask, does }) {
    this.does = does;
    this.offer = node("div", "long", parent);
    this.stopped = node("p", "faint", this.offer);
    put(this.stopped, "Stopped.");
    put(node("p", "faint", this.offer), `${does} With a model of this size that takes a while. You can stop it, and use the page meanwhile.`);
    this.start = button(this.offer, ask, () => this.asked(), { className: "act" });
    this.running = node("div", "long", parent);
    this.words = node("p", "faint", this.running);
    attribute(this.words, "role", "status");
    this.bar = node("progress", "", this.running);
    attribute(this.bar, "aria-label", does);
    button(this.running, "Stop", () => this.stop(), { className: "act" });
    this.hide();
  }

  asked = () => {};

  stop = () => {};

  hide() {
    this.offer.hidden = this.running.hidden = true;
  }

  /**
   * The result of a stream. Never settles once another is asked for.
   *
   * @param {string} key the same for the same question
   * @param {(signal: AbortSignal) => AsyncGenerator<StreamEvent>} stream
   * @param {boolean} isLarge
   * @returns {Promise<any>}
   */
  async run(key, stream, isLarge) {
    this.ending?.abort();
    for (this.wasStopped = false; ; this.wasStopped = true) {
      const waits = this.wasStopped || (isLarge && !this.begun.has(key));
      if (waits) await this.untilAsked();
      this.running.hidden = !waits;
      this.begun.add(key);
      const ending = (this.ending = new AbortController());
      const stopped = new Promise((resolve) => (this.stop = () => resolve(null)));
      const result = await Promise.race([this.resultOf(stream(ending.signal), ending), stopped]);
      if (this.ending !== ending) return new Promise(() => {});
      ending.abort();
      this.hide();
      if (result) return result;
    }
  }

  /** @returns {Promise<void>} */
  untilAsked() {
    this.hide();
    this.stopped.hidden = !this.wasStopped;
    this.offer.hidden = false;
    return new Promise((resolve) => (this.asked = () => {
      this.start.blur();
      resolve();
    }));
  }

  /** @param {AsyncGenerator<StreamEvent>} events @param {AbortController} ending */
  async resultOf(events, ending) {
    const since = performance.now();
    this.showProgress(0);
    this.offer.hidden = true;
    try {
      for await (const { event, data } of events) {
        if (event === "result") return data;
        if (ending.signal.aborted || event !== "progress") continue;
        this.showProgress(data.share);
        if (performance.now() - since >= SHOWN_AFTER_MS) this.running.hidden = false;
      }
    } catch (error) {
      if (ending.signal.aborted) return null; // nobody waits for it any more
      this.hide();
      throw error;
    }
    return null;
  }

  /** @param {number} share */
  showProgress(share) {
    this.bar.value = share;
    put(this.words, `${this.does} ${Math.floor(100 * share)}%`);
  }
}

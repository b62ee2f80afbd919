// The tab's half of the protocol between the shell and Python: it owns the page state, and sends it where Python has drawn
// something of another one.
import { DEFAULT_MODEL, FIRST_MODEL } from "../../../transformer/frontend/page/page_state.js";
import { pageChange } from "./page_change.js";
import table from "../../../transformer/frontend/parameters.json" with { type: "json" };
/** @import { PageState } from "../../../transformer/frontend/page/page_state.js" */

const DIALS = table.parameters.filter(({ owner }) => owner === "widget").map(({ name }) => name);
const AGAIN_MS = 5000; // after which a message is sent anew: it was lost if the server was away

/**
 * @typedef {object} Told what a run of Python tells the tab
 * @property {string} session
 * @property {string} path of the page that is drawn
 * @property {number} sent the last message that the run has read
 * @property {string} reading names the view that Python has read
 * @property {Record<string, string>} dials_read the dials of that view
 * @property {Record<string, string>} dials as they are now
 * @property {Record<string, string | null>} drawn the values of which the page draws something
 * @property {boolean} [asks_before] whether Python wants to know what the tab held before it held this view
 * @property {{ number: number, kind: "values" | "model" | "view", values: Record<string, string | null> }[]} commands
 */

export class Exchange {
  /** @type {Told | null} */ told = null;
  /** @type {string | null} */ agreed = null; // the reading of the view that the tab holds; its dials are Python's
  /** @type {(message: object) => void} */ send;
  sent = 0;
  isWaiting = false; // for a run that has read the last message
  obeyed = 0; // the last command of the session

  /**
   * @param {PageState} state
   * @param {{ stale?: (isStale: boolean) => void, change?: { isUnderWay: (now: number) => boolean, arrived: (path: string) => void } }} [options]
   *   stale: told whether Python's part of the page shows another state; change: of the page
   */
  constructor(state, { stale = () => {}, change = pageChange() } = {}) {
    this.state = state;
    this.stale = stale;
    this.change = change;
    this.arrivals = state.arrivals;
    state.follow(() => {
      if (state.arrivals !== this.arrivals) this.agreed = null;
      this.arrivals = state.arrivals;
      this.compareSoon();
    });
  }

  /** A run of Python draws the page that is open. @param {Told} told @param {(message: object) => void} send */
  draw(told, send) {
    if (told.session !== this.told?.session) this.obeyed = 0;
    if (told.session !== this.told?.session || told.sent === this.sent) this.isWaiting = false;
    Object.assign(this, { told, send });
    if (this.state.get("model") === null) this.state.set({ model: Object.keys(this.state.all()).length ? DEFAULT_MODEL : FIRST_MODEL });
    this.change.arrived(told.path);
    for (const command of told.commands) if (command.number > this.obeyed) this.obey(command);
    if (told.reading !== this.agreed && DIALS.every((name) => this.has(name, told.dials_read[name]))) this.agreed = told.reading;
    if (told.reading === this.agreed) this.state.set(Object.fromEntries(DIALS.map((name) => [name, told.dials[name] ?? null])));
    this.state.flush(); // the address of a page that was just opened has no parameters
    this.compareSoon();
  }

  obey({ number, kind, values }) {
    this.obeyed = number;
    if (kind === "view") this.state.become(new URLSearchParams(values));
    else if (kind === "model") this.state.choose("model", values.model);
    else this.state.set(values);
  }

  has(name, text) {
    return this.state.get(name) === (text ?? null);
  }

  /** A little later: a click may be about to leave the page, and several values may change together. */
  compareSoon() {
    this.soon ??= setTimeout(() => {
      this.soon = undefined;
      this.compare();
    }, 0);
  }

  /** Send the page state if Python has drawn something of another one; while the page is being left, that would bring it back. */
  compare() {
    if (!this.told || this.change.isUnderWay(performance.now())) return;
    const { drawn, reading, asks_before: asksBefore = false } = this.told;
    const isOther = asksBefore || reading !== this.agreed || Object.keys(drawn).some((name) => !this.has(name, drawn[name]));
    this.stale(isOther);
    clearTimeout(this.again);
    if (!isOther) return;
    if (!this.isWaiting) this.say();
    this.again = setTimeout(() => {
      this.isWaiting = false;
      this.compare();
    }, AGAIN_MS);
  }

  say() {
    this.sent += 1;
    this.isWaiting = true;
    this.state.flush();
    const { session, asks_before: asksBefore } = this.told;
    this.send({ sent: this.sent, agreed: this.agreed, session, obeyed: this.obeyed, values: this.state.all(), before: asksBefore ? this.state.before : null });
  }
}

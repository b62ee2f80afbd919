// The tab's half of the protocol between the shell and Python: it owns the page state, and sends it where Python has drawn
// something of another one.
import { pageChange } from "../../../transformer/frontend/page_change.js";
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
 * @property {{ number: number, values: Record<string, string | null>, is_whole: boolean }[]} commands
 */

export class Exchange {
  /** @type {Told | null} */ told = null;
  /** @type {string | null} */ agreed = null; // the reading of the view that the tab holds; its dials are Python's
  sent = 0;
  obeyed = 0; // the last command of the session

  /**
   * @param {PageState} state
   * @param {{ stale?: (isStale: boolean) => void, isLeaving?: () => boolean }} [options] stale: told whether Python's part shows another state
   */
  constructor(state, { stale = () => {}, isLeaving = () => pageChange().isUnderWay(performance.now()) } = {}) {
    Object.assign(this, { state, stale, isLeaving });
    this.arrivals = state.arrivals;
    state.follow(() => {
      if (state.arrivals !== this.arrivals) this.agreed = null;
      this.arrivals = state.arrivals;
      this.compareSoon();
    });
  }

  /** A run of Python draws a page. @param {Told} told @param {(message: object) => void} send */
  draw(told, send) {
    if (told.session !== this.told?.session) Object.assign(this, { obeyed: 0, sent: Math.max(this.sent, told.sent), answered: this.sent });
    Object.assign(this, { told, send });
    for (const command of told.commands) if (command.number > this.obeyed) this.obey(command);
    if (told.reading !== this.agreed && DIALS.every((name) => this.has(name, told.dials_read[name]))) this.agreed = told.reading;
    if (told.reading === this.agreed) this.state.set(Object.fromEntries(DIALS.map((name) => [name, told.dials[name] ?? null])));
    this.compareSoon();
  }

  obey({ number, values, is_whole: isWhole }) {
    this.obeyed = number;
    if (isWhole) this.state.become(new URLSearchParams(values));
    else this.state.set(values);
  }

  has(name, text) {
    return this.state.get(name) === (text ?? null);
  }

  /** A little later: a click may be about to leave the page, and several values may change together. */
  compareSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.compare();
    }, 0);
  }

  compare() {
    if (!this.told || this.isLeaving()) return; // the next page's run will tell
    const { drawn, reading } = this.told;
    const isOther = reading !== this.agreed || Object.keys(drawn).some((name) => !this.has(name, drawn[name]));
    this.stale(isOther);
    clearTimeout(this.again);
    if (!isOther) return;
    this.again = setTimeout(() => this.say(), AGAIN_MS);
    if (this.told.sent >= this.sent) this.say(); // else a run is under way that will have read the last message
  }

  say() {
    this.sent += 1;
    this.send({ sent: this.sent, agreed: this.agreed, obeyed: [this.told.session, this.obeyed], values: this.state.all() });
  }
}

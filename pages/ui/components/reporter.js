// Tells Python what the hand does: what is looked at when the hand has rested, at most once a second, and at the latest when the
// visitor turns to something else; what has to be done at once, one thing after another. What isn't heard is told again. A
// change of page waits until Python has heard all, and after it nothing is sent any more: Streamlit loses what a part of a
// page sends just before the page changes, and what comes just after leaves the new page empty.

import { PAGE_LINK } from "./page_link.js";

const REST_MS = 400;
const EVERY_MS = 1000;
const HEARD_MS = 1500; // a change of page waits no longer than this
const DONE_MS = 6000; // or than this for what is to be done, which the next page may show
const AGAIN_MS = 600; // what an answer shows not to have been heard by then is told again
const SILENT_MS = 1500; // and without an answer by then, too; then after twice that, and so on
const MOST_TRIES = 2;
const GATHERING_MS = 30; // Streamlit sends what a component tells in a task of its own, a few milliseconds later

export class Reporter {
  /**
   * root: what doesn't count as something else. tell(event): to Python; an event has a `count`, which grows. leave(): called
   * before the page is left, to say what is still to be said. wake(): run the page; called when Python stays silent, as it does
   * when its session is gone, and with it the part of the page that was to hear.
   */
  constructor(root, tell, { leave = () => {}, wake = () => {} } = {}) {
    this.root = root;
    this.wake = wake;
    this.tell = tell;
    this.beforeLeaving = leave;
    this.sentAt = -EVERY_MS;
    this.isLeaving = this.isParting = false;
    this.acts = new Map(); // what is to be done, by kind, in the order in which it was asked for
    const gone = new AbortController();
    const on = (target, kind, act) => target.addEventListener(kind, (event) => {
      if (root.isConnected) act(event);
      else gone.abort();
    }, { capture: true, signal: gone.signal });
    const isElsewhere = (event) => !event.composedPath().includes(root);
    on(document, "pointerdown", (event) => isElsewhere(event) && this.flush());
    // A letter leads nowhere.
    on(document, "keydown", (event) => isElsewhere(event) && (event.key.length > 1 || event.key === " ") && this.flush());
    on(document, "click", (event) => this.onClick(event));
    on(globalThis, "popstate", (event) => this.onHistory(event)); // captured: before Streamlit hears of it
    on(globalThis, "pagehide", () => {
      this.beforeLeaving();
      this.flush();
    });
  }

  /** Whether there is something that Python doesn't know of. */
  get isAhead() {
    return this.compose !== undefined || this.unheard !== undefined || this.acts.size > 0;
  }

  /** Whether something is still to be done. */
  get isBusy() {
    return Boolean(this.unheard?.isAct) || this.acts.size > 0;
  }

  /** Whether anything can be sent now. */
  get isOpen() {
    return !this.isLeaving && this.root.isConnected;
  }

  /** compose() → what is looked at, to be told when the hand has rested. */
  report(compose) {
    this.compose = compose;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), Math.max(REST_MS, this.sentAt + EVERY_MS - performance.now()));
  }

  /** The same, to be told only when the visitor turns to something else. */
  note(compose) {
    this.compose ??= compose;
  }

  /** Something to be done at once, or when what was sent before has been heard: the latest of its kind. */
  act(kind, compose) {
    this.acts.delete(kind);
    this.acts.set(kind, compose);
    this.next();
  }

  flush() {
    clearTimeout(this.timer);
    const { compose } = this;
    // What something has to be done for isn't overtaken; what was looked at before is.
    if (compose && this.isBusy) this.isDue = true;
    else if (compose) this.send(compose, false);
  }

  next() {
    if (this.unheard?.isAct) return;
    const [[kind, compose] = []] = this.acts;
    if (compose) {
      this.acts.delete(kind);
      this.send(compose, true);
    } else if (this.isDue) this.flush();
  }

  send(compose, isAct) {
    clearTimeout(this.timer);
    this.compose = undefined; // an event tells all that there is to tell
    this.isDue = false;
    const count = Math.max(Date.now(), (this.count ?? 0) + 1);
    this.count = count;
    this.unheard = { event: { ...compose(count), count }, isAct, wait: SILENT_MS, tries: 0 };
    this.transmit();
  }

  transmit() {
    clearTimeout(this.silence);
    this.sentAt = performance.now();
    const { unheard } = this;
    if (!this.isOpen) return;
    unheard.tries += 1;
    if (unheard.tries > MOST_TRIES) this.wake();
    else this.tell(unheard.event);
    this.silence = setTimeout(() => this.unheard === unheard && this.transmit(), unheard.wait);
    unheard.wait *= 2;
  }

  /** Python has answered. count: of the last event that it has heard; isNew: in a run of the page. `proceed` is to follow. */
  heard(count, isNew) {
    if (isNew) this.isLeaving = false;
    if (!this.unheard) return;
    if (count >= this.unheard.event.count) {
      this.unheard = undefined;
      clearTimeout(this.silence);
    } else if (performance.now() - this.sentAt > AGAIN_MS) this.transmit();
  }

  /** Its answer has been taken in: what waited for it can be told. */
  proceed() {
    this.next();
    if (!this.unheard) this.goOn?.();
  }

  /** Something else is shown: what is looked at needn't be told. keepsActs: what is to be done still is. */
  forget(keepsActs = false) {
    clearTimeout(this.timer);
    this.isDue = false;
    this.compose = undefined;
    if (keepsActs && this.unheard?.isAct) return;
    clearTimeout(this.silence);
    this.unheard = undefined;
    if (!keepsActs) this.acts.clear();
  }

  leave() {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.isLeaving = true;
  }

  onClick(event) {
    const link = event.composedPath().find((each) => each.matches?.(PAGE_LINK));
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (!this.holds(event)) return;
    this.flush();
    clearTimeout(this.patience);
    this.goOn = () => this.part(() => link.click());
    if (this.unheard) this.patience = setTimeout(this.goOn, this.isBusy ? DONE_MS : HEARD_MS);
    else this.goOn();
  }

  // The address is another page's by now, which an answer about this one would change.
  onHistory(event) {
    if (this.holds(event)) this.part(() => dispatchEvent(new PopStateEvent("popstate", { state: event.state })));
  }

  /** Keep what leads to another page from leading there; false, if nothing is sent any more that it would have to wait for. */
  holds(event) {
    if (this.isLeaving && !this.isParting) return false;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (this.isParting) return false; // the second of two clicks
    this.beforeLeaving();
    return true;
  }

  /** Leave; what was sent in this moment goes out before the other page is asked for. */
  part(go) {
    this.goOn = undefined;
    clearTimeout(this.patience);
    this.leave();
    this.isParting = true;
    setTimeout(() => {
      this.isParting = false;
      go();
    }, GATHERING_MS);
  }
}

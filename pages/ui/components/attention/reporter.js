// Tells Python what is looked at: when the hand has rested, at most once a second, and at the latest when the visitor
// turns to something else. A change of page waits until Python has heard of it, and after it nothing is sent any more:
// Streamlit loses what a part of a page sends just before the page changes, and stumbles over what comes just after.

const REST_MS = 400;
const EVERY_MS = 1000;
const HEARD_MS = 1500; // a change of page waits no longer than this
const AGAIN_MS = 600; // what wasn't heard by then is told again
const PAGE_LINK = "[data-testid=stPageLink] a";

export class Reporter {
  /** send(event, value): to Python. root: what doesn't count as something else. */
  constructor(root, send) {
    this.root = root;
    this.sendNow = send;
    this.sentAt = -EVERY_MS;
    this.isLeaving = false;
    const gone = new AbortController();
    const on = (target, kind, act) => target.addEventListener(kind, (event) => {
      if (root.isConnected) act(event);
      else gone.abort();
    }, { capture: true, signal: gone.signal });
    for (const kind of ["pointerdown", "keydown"]) on(document, kind, (event) => !event.composedPath().includes(root) && this.flush());
    on(document, "click", (event) => this.onClick(event));
    on(globalThis, "popstate", () => this.leave());
    on(globalThis, "pagehide", () => this.flush());
  }

  /** Whether something is looked at that Python doesn't know of. */
  get isAhead() {
    return this.chosen !== undefined || this.unheard !== undefined;
  }

  send(event, value) {
    if (!this.isLeaving && this.root.isConnected) this.sendNow(event, value);
  }

  report(chosen) {
    this.chosen = chosen;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), Math.max(REST_MS, this.sentAt + EVERY_MS - performance.now()));
  }

  flush() {
    const { chosen } = this;
    clearTimeout(this.timer);
    if (chosen === undefined) return;
    this.chosen = undefined;
    this.sentAt = performance.now();
    this.unheard = { chosen, count: Date.now() };
    this.send("chosen", { ...chosen, count: this.unheard.count });
  }

  /** Python has answered. seen: the count of the last report that it has heard; isNew: in a run of the page. */
  heard(seen, isNew) {
    if (isNew) this.isLeaving = false;
    if (!this.unheard) return;
    if (seen >= this.unheard.count) {
      this.unheard = undefined;
      this.goOn?.();
    } else if (performance.now() - this.sentAt > AGAIN_MS) {
      this.chosen ??= this.unheard.chosen;
      this.flush();
    }
  }

  forget() {
    clearTimeout(this.timer);
    this.chosen = this.unheard = undefined;
  }

  leave() {
    clearTimeout(this.timer);
    this.isLeaving = true;
  }

  onClick(event) {
    const link = event.composedPath().find((each) => each.matches?.(PAGE_LINK));
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    this.flush();
    if (!this.unheard || this.isLeaving) {
      this.leave();
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    this.goOn = () => {
      this.goOn = undefined;
      clearTimeout(this.patience);
      this.leave();
      link.click();
    };
    clearTimeout(this.patience);
    this.patience = setTimeout(this.goOn, HEARD_MS);
  }
}

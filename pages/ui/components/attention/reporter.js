// Tells Python what is looked at: when the hand has rested, at most once a second, and at the latest when the visitor
// turns to something else.

const REST_MS = 400;
const EVERY_MS = 1000;

export class Reporter {
  /** sender(): how to send, once that is known. root: what doesn't count as something else. */
  constructor(sender, root) {
    this.sender = sender;
    this.sentAt = -EVERY_MS;
    this.root = root;
    const gone = new AbortController();
    const elsewhere = (event) => {
      if (!root.isConnected) gone.abort();
      else if (!event.composedPath().includes(root)) this.flush();
    };
    for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, elsewhere, { capture: true, signal: gone.signal });
    addEventListener("pagehide", () => this.flush(), { signal: gone.signal });
  }

  /** Whether something is looked at that Python doesn't know of. */
  get isAhead() {
    return this.chosen !== undefined;
  }

  report(chosen) {
    this.chosen = chosen;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), Math.max(REST_MS, this.sentAt + EVERY_MS - performance.now()));
  }

  forget() {
    clearTimeout(this.timer);
    this.chosen = undefined;
  }

  flush() {
    const { chosen } = this;
    const send = this.sender();
    if (chosen === undefined || !send || !this.root.isConnected) return;
    this.forget();
    this.sentAt = performance.now();
    send("chosen", chosen);
  }
}

// Which parts of a pass are asked for, and when: one request at a time, what is looked at now first.

const ANSWER_MS = 4000; // without an answer for so long, a request is made again
const MOST = 48; // parts of one request

export class Asking {
  /** want(parts): ask for them. */
  constructor(want) {
    this.want = want;
    this.until = 0;
  }

  /** Something else is looked at. needs(): the parts of it that aren't there. */
  look(needs) {
    this.needs = needs;
    this.next();
  }

  /** An answer has come. */
  arrived() {
    this.until = 0;
    this.next();
  }

  next() {
    clearTimeout(this.timer);
    const wanted = new Map((this.needs?.() ?? []).map((part) => [part.join(), part]));
    if (!wanted.size) return;
    const wait = this.until - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => this.next(), wait);
      return;
    }
    this.until = performance.now() + ANSWER_MS;
    this.want([...wanted.values()].slice(0, MOST));
    this.timer = setTimeout(() => this.next(), ANSWER_MS);
  }
}

// The clock by which tokens that have come are shown: evenly, as fast as the pace says or as they come, and never in a jump.
// Where nothing has come in time it waits; where nobody looked, in a hidden tab, it goes on from where it stood.

const SLACK_MS = 250; // a frame may be late by so much; what is later wasn't watched, and isn't made up for
const LOOK_MS = 100; // between two looks at what isn't due at a known time

export class Reveal {
  constructor() {
    this.next = null; // when the next token is due; null: as soon as there is one
  }

  /** The next token to come is shown at once. */
  restart() {
    this.next = null;
  }

  /** How many tokens are due. now: milliseconds; there: how many have come; rate: tokens a second. */
  due(now, there, rate) {
    if (this.next !== null && now - this.next > SLACK_MS) this.next = null;
    if (there < 1) {
      if (this.next !== null && this.next <= now) this.next = null;
      return 0;
    }
    this.next ??= now;
    let count = 0;
    while (count < there && this.next <= now) {
      count += 1;
      this.next += 1000 / rate;
    }
    return count;
  }

  /** For how many milliseconds no token is due, as far as is known; one that comes when others are waited for is due at once. */
  idle(now) {
    return this.next === null ? LOOK_MS : Math.min(Math.max(this.next - now, 0), LOOK_MS);
  }
}

export const RATES = { slow: 2, steady: 8, fast: 25, unbounded: Infinity }; // tokens a second
const AHEAD_MS = 700; // with less than this left to show, the next chunk is asked for
const EVERY_MS = 1000; // and no sooner after the last one was
const LEAST_MS = 150; // over which a chunk is spread at least, where there is no pace

/** When the next chunk is asked for, and how fast one is shown where no pace says so. */
export class Chunks {
  /** Writing begins. */
  begin() {
    this.askedAt = this.cameAt = -Infinity;
    this.came = 0;
    this.spread = LEAST_MS;
  }

  asked(now) {
    this.askedAt = now;
  }

  /** A chunk has come, and so many tokens are there now. */
  arrived(now, there) {
    if (this.came) this.spread = Math.max(now - this.cameAt, LEAST_MS);
    this.came += 1;
    this.cameAt = now;
    this.perSecond = (1000 * Math.max(there, 1)) / this.spread;
  }

  /**
   * Tokens a second to show. isMissing: whether more are to come; where they come more slowly than the pace, as a large
   * model's do, what is there is spread until then.
   */
  rate(pace, isMissing = false) {
    const rate = RATES[pace] ?? RATES.fast;
    if (!Number.isFinite(rate)) return this.perSecond ?? RATES.fast;
    return isMissing && this.came > 2 ? Math.min(rate, this.perSecond) : rate;
  }

  /** Whether to ask now, of a server that owes no answer, with so many tokens there that are still to be shown. */
  isDue(now, there, pace) {
    if (!Number.isFinite(RATES[pace] ?? RATES.fast)) return true;
    const isLow = there < (AHEAD_MS / 1000) * this.rate(pace);
    return isLow && (this.came < 2 || now - this.askedAt >= EVERY_MS); // the first is small, so as to come soon
  }
}

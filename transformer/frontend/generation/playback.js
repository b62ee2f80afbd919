// Runs the clock that reveals received tokens at an even pace. It waits where tokens arrive late; in a hidden tab it stops,
// and goes on from there.

const SLACK_MS = 250; // a frame may be late by so much; a longer pause, as of a hidden tab, isn't made up for
const LOOK_MS = 100; // between two looks while nothing is due at a known time

export class Playback {
  constructor() {
    this.next = null; // when the next token is due; null: as soon as there is one
  }

  /** Show the next token at once. */
  restart() {
    this.next = null;
  }

  /** How many tokens are due. now: milliseconds; there: tokens that have arrived; rate: tokens a second. */
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

  /** Milliseconds until the next token is due. One that arrives late is due at once, so it looks again soon. */
  idle(now) {
    return this.next === null ? LOOK_MS : Math.min(Math.max(this.next - now, 0), LOOK_MS);
  }
}

const RATES = { slow: 2, steady: 8, fast: 25, unbounded: Infinity }; // tokens a second
const SPREAD = 0.15; // seconds over which arrived tokens are spread at the unbounded pace

/** Tokens a second to reveal. there: tokens that wait to be revealed. */
export function rateOf(pace, there) {
  const rate = RATES[pace] ?? RATES.fast;
  return Number.isFinite(rate) ? rate : Math.max(RATES.fast, there / SPREAD);
}

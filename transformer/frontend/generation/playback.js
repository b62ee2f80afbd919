// Runs the clock that reveals received tokens at an even pace. Where nothing has come in time it waits; in a hidden tab
// it stops, and goes on from there.

const SLACK_MS = 250; // a frame may be late by so much; what is later wasn't watched, and isn't made up for
const LOOK_MS = 100; // between two looks at what isn't due at a known time

export class Playback {
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

const RATES = { slow: 2, steady: 8, fast: 25, unbounded: Infinity }; // tokens a second
const SPREAD = 0.15; // seconds over which what has come is spread, where there is no pace

/** Tokens a second to show, with so many there that are still to be shown. */
export function rateOf(pace, there) {
  const rate = RATES[pace] ?? RATES.fast;
  return Number.isFinite(rate) ? rate : Math.max(RATES.fast, there / SPREAD);
}

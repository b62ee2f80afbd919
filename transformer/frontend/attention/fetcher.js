// Decides which parts of a pass to request, and when: the selected head first, then its row, then heads that may be
// selected next.
/** @import { Pass } from "./pass.js" */

const ANSWER_MS = 4000; // a request without an answer is repeated after that
const REST_MS = 250; // a row's own numbers are requested after the pointer has rested on it
const AT_ONCE = 400_000; // bytes of a request made ahead
const AHEAD = 8_000_000; // bytes of a pass that are fetched ahead
const MOST = 16; // heads of one request, with three tensors each

/** @typedef {["head", layer: number, head: number] | ["row", layer: number, head: number, query: number]} Wanted */

export class Fetcher {
  /** @type {Pass} */ pass;
  /** @type {number} */ fetched; // bytes, ahead
  /** @type {{ layer: number, head: number, row: number }} */ at;

  /**
   * @param {(parts: Wanted[]) => void} want
   * @param {(isDone: boolean) => void} [rests] told whether all that was to be fetched has come
   */
  constructor(want, rests = () => {}) {
    this.want = want;
    this.rests = rests;
    this.pending = null;
  }

  begin(pass) {
    this.pass = pass;
    this.pending = null;
    this.fetched = 0;
    this.headBytes = 4 * pass.width * (pass.queries + 2 * pass.keys);
  }

  /** The selection has changed. */
  look(at) {
    this.at = at;
    this.restsAt = performance.now() + REST_MS;
    this.next();
  }

  /** The pointer is over a head, which may be selected next. */
  hint(layer, head) {
    if (!this.pass || this.pass.has(layer, head) || this.pending?.head) return;
    this.pending = { until: performance.now() + ANSWER_MS, head: [layer, head] };
    this.want([["head", layer, head]]);
  }

  /** An answer has arrived. */
  arrived() {
    const head = this.pending?.head;
    if (!head || this.pass.has(...head)) this.pending = null; // what was fetched ahead may arrive before it
    clearTimeout(this.timer);
    this.next();
  }

  next() {
    if (!this.at || !this.pass) return;
    const wanted = this.choose();
    clearTimeout(this.timer);
    this.rests(!wanted.length);
    if (!wanted.length) return;
    const urgent = wanted[0][0] === "head" && wanted[0][1] === this.at.layer && wanted[0][2] === this.at.head;
    const head = urgent ? wanted[0].slice(1) : null;
    const isPending = this.pending && (!urgent || this.pending.head?.join() === head.join()); // the selected head doesn't wait for another's answer
    const wait = isPending ? this.pending.until - performance.now() : urgent ? 0 : this.restsAt - performance.now();
    if (wait > 0) {
      this.tryAgain(wait);
      return;
    }
    this.pending = { until: performance.now() + ANSWER_MS, head };
    if (wanted.isAhead) this.fetched += wanted.length * this.headBytes;
    this.want(wanted);
    this.tryAgain(ANSWER_MS);
  }

  tryAgain(milliseconds) {
    this.timer = setTimeout(() => {
      this.pending = null;
      this.next();
    }, milliseconds);
  }

  /** @returns {Wanted[] & { isAhead?: boolean }} */
  choose() {
    const { pass, at } = this;
    if (!pass.has(at.layer, at.head)) return [["head", at.layer, at.head]];
    if (!pass.hasRow(at.layer, at.head, at.row)) return [["row", at.layer, at.head, at.row]];
    if (this.fetched >= AHEAD) return [];
    // From the selected layer outwards.
    const layers = Array.from({ length: pass.layers }, (_, layer) => layer)
      .sort((one, other) => Math.abs(one - at.layer) - Math.abs(other - at.layer));
    const missing = layers.flatMap((layer) => missingIn(pass, layer));
    return Object.assign(missing.slice(0, Math.min(MOST, Math.max(1, Math.floor(AT_ONCE / this.headBytes)))), { isAhead: true });
  }
}

/** The heads of a layer that can't be drawn in full yet. @returns {Wanted[]} */
function missingIn(pass, layer) {
  return Array.from({ length: pass.heads }, (_, head) => head).filter((head) => !pass.has(layer, head)).map((head) => ["head", layer, head]);
}

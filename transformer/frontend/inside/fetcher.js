// Decides which parts of a pass to request, and when: one request at a time, the current view first.

const ANSWER_MS = 4000; // without an answer for so long, a request is made again
const MOST = 48; // parts of one request

/**
 * A part of a pass.
 *
 * @typedef {["tensor", name: string] | ["slice", name: string, head: number] | ["row", name: string, position: number]
 *   | ["lens", position: number] | ["attribution", position: number, token: number] | ["checks"]
 *   | ["circuit", kind: string, attention: string, head: number]} Wanted
 */

export class TensorFetcher {
  /** @type {(() => Wanted[]) | undefined} */ needs;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ timer;

  /** @param {(parts: Wanted[]) => void} want */
  constructor(want) {
    this.want = want;
    this.until = 0;
  }

  /**
   * Something else is looked at.
   *
   * @param {() => Wanted[]} needs the parts of it that aren't there
   */
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

/**
 * The parts that the tensors of what is open consist of and that a pass hasn't got, the most important first. part: the
 * head, or the row, of a tensor that is looked at.
 */
export function missingOf(pass, { layout, focus, cell, part }) {
  const missing = (name) => pass.missing(name, part(name));
  const wanted = [];
  if (focus?.name) wanted.push(...missing(focus.name));
  if (focus?.name && cell && pass.equation(focus.name)) wanted.push(...pass.needs(focus.name, cell));
  for (const stack of layout?.stacks ?? []) {
    for (const group of stack.groups) {
      if (!group.isOpen) continue;
      for (const { name } of group.parts.flatMap(({ rows }) => rows)) if (!pass.strip(name) && !pass.isByRow(name)) wanted.push(...missing(name));
    }
  }
  return wanted;
}

// A slider over the generated tokens, with buttons for the previous and the next.
import { attribute, put } from "../dom.js";

export class Timeline {
  /** @type {HTMLInputElement} */ timeline;
  /** @type {HTMLButtonElement} */ previous;
  /** @type {HTMLButtonElement} */ next;
  /** @type {HTMLElement} */ place;
  /** @type {(at: number) => void} */ onGo;
  /** @type {number} */ count;
  /** @type {number} */ at;

  /** onGo(at): the at-th written token, from 0, is to be looked at. */
  constructor({ timeline, previous, next, place }, onGo) {
    Object.assign(this, { timeline, previous, next, place, onGo, count: 0, at: 0 });
    timeline.addEventListener("input", () => this.goTo(Number(timeline.value) - 1));
    previous.addEventListener("click", () => this.goTo(this.at - 1));
    next.addEventListener("click", () => this.goTo(this.at + 1));
  }

  goTo(at) {
    if (this.count) this.onGo(Math.min(Math.max(at, 0), this.count - 1));
  }

  /** count: how many are written; at: which is looked at, `count` for the one that comes next; name: of that one. */
  show(count, at, name) {
    const { timeline, previous, next, place } = this;
    Object.assign(this, { count, at });
    const isNext = at >= count;
    timeline.max = String(Math.max(count, 1));
    timeline.value = String(isNext ? count : at + 1);
    timeline.parentElement.style.visibility = count ? "" : "hidden"; // it keeps its place
    timeline.disabled = count < 1;
    // Not `disabled`: a button that ends where it stands would lose the focus to the page.
    attribute(previous, "aria-disabled", String(count < 1 || at === 0));
    attribute(next, "aria-disabled", String(count < 1 || at >= count - 1));
    put(place, name);
    attribute(timeline, "aria-valuetext", name);
  }
}

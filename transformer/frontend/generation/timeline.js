// Draws a slider over the positions after the prompt, the one to come among them, with buttons for the previous and the next.
import { attribute, put } from "../dom.js";

export class Timeline {
  /** @type {HTMLInputElement} */ timeline;
  /** @type {HTMLButtonElement} */ previous;
  /** @type {HTMLButtonElement} */ next;
  /** @type {HTMLElement} */ position;
  /** @type {(position: number) => void} */ onGo;
  /** @type {number} */ current;

  /** onGo(position): select this position. */
  constructor({ timeline, previous, next, position }, onGo) {
    Object.assign(this, { timeline, previous, next, position, onGo });
    timeline.addEventListener("input", () => this.goTo(Number(timeline.value)));
    previous.addEventListener("click", () => this.goTo(this.current - 1));
    next.addEventListener("click", () => this.goTo(this.current + 1));
  }

  goTo(position) {
    const { min, max, disabled } = this.timeline;
    if (this.current !== undefined && !disabled) this.onGo(Math.min(Math.max(position, Number(min)), Number(max)));
  }

  /** first, last: the positions that the slider reaches, none if last is before first; position: the one that is looked at, or one in the prompt. */
  show(first, last, position) {
    const { timeline, previous, next, position: label } = this;
    const isEmpty = last < first;
    this.current = position;
    timeline.min = String(first);
    timeline.max = String(Math.max(first, last));
    timeline.value = String(position);
    timeline.parentElement.style.visibility = isEmpty ? "hidden" : ""; // it keeps its place
    timeline.disabled = isEmpty;
    // Not `disabled`: a button that ends where it stands would lose the focus to the page.
    attribute(previous, "aria-disabled", String(isEmpty || position <= first));
    attribute(next, "aria-disabled", String(isEmpty || position >= last));
    put(label, `token ${position}`);
    attribute(timeline, "aria-valuetext", `token ${position}`);
  }
}

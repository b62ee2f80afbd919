// The written tokens one after the other: a slider, a button back and one on.
import { attribute, put } from "../../../../transformer/instrument/dom.js";

export class Timeline {
  /** onGo(index): the token at an index is to be looked at. */
  constructor({ timeline, previous, next, place }, onGo) {
    Object.assign(this, { timeline, previous, next, place, onGo });
    timeline.addEventListener("input", () => this.goTo(Number(timeline.value) - 1));
    previous.addEventListener("click", () => this.goTo(this.at() - 1));
    next.addEventListener("click", () => this.goTo(this.at() + 1));
  }

  goTo(place) {
    const { written } = this.text;
    const index = written[Math.min(Math.max(place, 0), written.length - 1)];
    if (index !== undefined) this.onGo(index);
  }

  at() {
    const at = this.text.written.indexOf(this.selected);
    return at < 0 ? this.text.written.length : at;
  }

  show(text, selected) {
    const { timeline, previous, next, place } = this;
    this.text = text;
    this.selected = selected;
    const count = text.written.length;
    const at = text.written.indexOf(selected);
    timeline.max = Math.max(count, 1);
    timeline.value = at < 0 ? count : at + 1;
    timeline.disabled = count < 1;
    // Not `disabled`: a button that ends where it stands would lose the focus to the page.
    attribute(previous, "aria-disabled", String(count < 1 || at === 0));
    attribute(next, "aria-disabled", String(count < 1 || at < 0 || at === count - 1));
    put(place, count ? (at < 0 ? `after ${count}` : `${at + 1} of ${count}`) : "–");
    const label = at < 0 ? "next token" : text.token(selected).label;
    timeline.setAttribute("aria-valuetext", at < 0 ? label : `token ${at + 1} of ${count}, ${label}`);
  }
}

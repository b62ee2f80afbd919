// What a term means, beside it, while it is pointed at, tapped, or said by a control that has the focus.
import { put } from "../../../../transformer/frontend/dom.js";
import { drawEntry } from "./entry.js";

const REST_MS = 250; // for which the pointer rests on a term before it is explained
const FOCUS_MS = 700; // for which a control has the focus before the term in its name is
const LEAVE_MS = 300; // to get from a term to what is said of it
const GAP = 6; // pixels
const PRESSED = "button, a, label, summary, [role=button], [role=radio], [role=tab], [role=checkbox]";

export class Gloss {
  /** element: the tip, with popover="manual"; marks: `Marks`, in which terms are looked up. */
  constructor(element, marks) {
    this.element = element;
    this.marks = marks;
    const on = (kind, act) => document.addEventListener(kind, act, { capture: true, passive: true });
    on("pointermove", (event) => event.pointerType === "mouse" && this.pointAt(event));
    on("pointerdown", (event) => this.isWithin(event) || this.hide());
    on("scroll", (event) => this.isWithin(event) || this.hide());
    on("click", (event) => this.onTap(event));
    on("focusin", (event) => this.onFocus(event));
    on("focusout", () => this.byFocus && this.hide());
    // Not passive: Escape closes what is said, and nothing else.
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOpen) return;
      event.stopImmediatePropagation();
      event.preventDefault();
      this.hide();
    }, { capture: true });
  }

  get isOpen() {
    return this.element.matches(":popover-open");
  }

  isWithin(event) {
    return event.composedPath().includes(this.element);
  }

  pointAt(event) {
    clearTimeout(this.resting);
    if (this.isWithin(event)) {
      clearTimeout(this.leaving);
      this.leaving = undefined;
      return;
    }
    const [target] = event.composedPath();
    const { clientX: x, clientY: y } = event;
    if (this.isOpen && !this.byFocus && this.marks.at(target, x, y)?.term !== this.term) this.leave();
    if (!this.marks.of(target).length) return;
    this.resting = setTimeout(() => this.showAt(target, x, y), REST_MS);
  }

  leave() {
    this.leaving ??= setTimeout(() => this.hide(), LEAVE_MS);
  }

  showAt(target, x, y) {
    const mark = this.marks.at(target, x, y);
    if (mark) this.show(mark.term, mark.rect);
    return mark;
  }

  // A tap on what is there to be pressed presses it, and no more.
  onTap(event) {
    const [target] = event.composedPath();
    if (event.pointerType !== "touch" || this.isWithin(event) || target.closest?.(PRESSED)) return;
    this.showAt(target, event.clientX, event.clientY);
  }

  onFocus(event) {
    const [target] = event.composedPath();
    clearTimeout(this.resting);
    if (this.isWithin(event) || !target.matches?.(":focus-visible")) return;
    this.resting = setTimeout(() => {
      const named = [target, target.closest("label"), ...(target.labels ?? []), labelOf(target)];
      const [mark] = named.flatMap((each) => (each ? this.marks.of(each).filter(({ range }) => each.contains(range.startContainer)) : []));
      if (!mark || !target.matches(":focus")) return;
      this.show(mark.term, target.getBoundingClientRect());
      this.byFocus = true;
    }, FOCUS_MS);
  }

  show(term, rect) {
    const { element } = this;
    clearTimeout(this.leaving);
    this.leaving = undefined;
    this.byFocus = false;
    if (this.isOpen && this.term === term) return;
    this.term = term;
    put(element, "");
    drawEntry(element, term, () => this.hide());
    if (!this.isOpen) element.showPopover();
    element.style.left = "0";
    const { width, height } = element.getBoundingClientRect();
    const { clientWidth, clientHeight } = document.documentElement;
    const below = rect.bottom + GAP + height < clientHeight;
    element.style.left = `${Math.max(GAP, Math.min(rect.left, clientWidth - width - GAP))}px`;
    element.style.top = `${below ? rect.bottom + GAP : Math.max(GAP, rect.top - GAP - height)}px`;
  }

  hide() {
    clearTimeout(this.resting);
    clearTimeout(this.leaving);
    this.leaving = undefined;
    this.byFocus = false;
    if (this.isOpen) this.element.hidePopover();
  }
}

/** The label that Streamlit draws over a widget of its own, whose input doesn't know it. */
function labelOf(element) {
  return element.closest("[data-testid=stElementContainer]")?.querySelector("[data-testid=stWidgetLabel] p");
}

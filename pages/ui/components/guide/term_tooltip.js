// Shows a glossary term's definition in a tooltip, on hover, tap or keyboard focus.
//
// It takes nothing from what it lies over: but for its button, presses go through it, and close it. It never covers what has the
// focus, and stays away while a list, a menu or a popover is open.
import { isComposing, put } from "../../../../transformer/frontend/dom.js";
import { isRaised, lower, place, raise } from "../../../../transformer/frontend/top_layer.js";
import { drawEntry } from "./glossary_entry.js";
import { inComponents } from "./in_components.js";
import { focused } from "./shortcuts.js";

const REST_MS = 300; // for which the pointer rests on a term before it is explained
const FOCUS_MS = 700; // for which a control has the focus before the term in its name is
const LEAVE_MS = 300; // to get from a term to what is said of it
const GAP = 6; // pixels
const PRESSED = "button, a, label, summary, [role=button], [role=radio], [role=tab], [role=checkbox]";
/** What is open for as long as something is chosen from it. */
const OPEN = "[role=listbox], [role=menu], [data-baseweb=popover], [data-testid=stPopoverBody], [data-testid=stDialog]";
const MENU = ".shell-menu:not([hidden])";

export class TermTooltip {
  /** element: the tip, with popover="manual"; underlines: `TermUnderlines`, in which terms are looked up. */
  constructor(element, underlines) {
    this.element = element;
    this.underlines = underlines;
    const on = (kind, act) => document.addEventListener(kind, act, { capture: true, passive: true });
    on("pointermove", (event) => event.pointerType === "mouse" && this.pointAt(event));
    on("pointerdown", (event) => this.isWithin(event) || this.hide());
    on("scroll", (event) => {
      clearTimeout(this.resting);
      if (this.isOpen && !this.isWithin(event)) this.hide(); // what gets the focus is scrolled to, and is explained then
    });
    on("click", (event) => this.onTap(event));
    on("focusout", (event) => this.isWithin(event) || this.hide());
    // Not passive: Escape closes what is said, and nothing else; any other key uses what has the focus.
    document.addEventListener("keydown", (event) => {
      if (this.isWithin(event) || isComposing(event)) return;
      if (event.key === "Escape" && this.isOpen) {
        event.stopImmediatePropagation();
        event.preventDefault();
      }
      this.hide();
      // The document isn't told where the focus moves to within a shadow tree.
      if (event.key === "Tab") this.naming = setTimeout(() => this.explainFocus(), FOCUS_MS);
    }, { capture: true });
  }

  get isOpen() {
    return isRaised(this.element);
  }

  isWithin(event) {
    return event.composedPath().includes(this.element);
  }

  /** Whether a point is on what is said, through which events fall. */
  covers(x, y) {
    if (!this.isOpen) return false;
    const { left, right, top, bottom } = this.element.getBoundingClientRect();
    return x >= left && x <= right && y >= top && y <= bottom;
  }

  pointAt(event) {
    clearTimeout(this.resting);
    const [target] = event.composedPath();
    const { clientX: x, clientY: y, buttons } = event;
    if (this.covers(x, y)) {
      clearTimeout(this.leaving);
      this.leaving = undefined;
      return;
    }
    if (this.isOpen && !this.byFocus && this.underlines.at(target, x, y)?.term !== this.term) this.leave();
    if (buttons || !this.underlines.of(target).length) return;
    this.resting = setTimeout(() => this.showAt(target, x, y), REST_MS);
  }

  leave() {
    this.leaving ??= setTimeout(() => this.hide(), LEAVE_MS);
  }

  showAt(target, x, y) {
    const mark = this.underlines.at(target, x, y);
    if (mark) this.show(mark.term, mark.rect);
    return mark;
  }

  // A tap on what is there to be pressed presses it, and no more.
  onTap(event) {
    const [target] = event.composedPath();
    if (event.pointerType !== "touch" || this.isWithin(event) || target.closest?.(PRESSED)) return;
    this.showAt(target, event.clientX, event.clientY);
  }

  explainFocus() {
    const target = /** @type {HTMLInputElement | null} */ (focused());
    if (!target?.matches(":focus-visible")) return;
    const named = [target, target.closest("label"), ...(target.labels ?? []), labelOf(target)];
    const [mark] = named.flatMap((element) => (element ? this.underlines.of(element).filter(({ range }) => element.contains(range.startContainer)) : []));
    if (!mark) return;
    this.show(mark.term, target.getBoundingClientRect());
    this.byFocus = this.isOpen;
  }

  show(term, rect) {
    const { element } = this;
    clearTimeout(this.leaving);
    this.leaving = undefined;
    this.byFocus = false;
    if (!element.isConnected || (this.isOpen && this.term === term)) return;
    if (document.querySelector(OPEN) || inComponents(MENU).length) return this.hide();
    this.term = term;
    put(element, "");
    drawEntry(element, term, () => this.hide());
    raise(element);
    if (!place(element, ({ width, height }) => placeBeside(rect, width, height, inFocus()?.getBoundingClientRect()))) this.hide();
  }

  hide() {
    clearTimeout(this.resting);
    clearTimeout(this.naming);
    clearTimeout(this.leaving);
    this.leaving = undefined;
    this.byFocus = false;
    lower(this.element);
  }
}

/** Below the term or above it, where it fits and covers nothing of what has the focus; nowhere if there is no such place. */
function placeBeside(rect, width, height, focus) {
  const { clientWidth, clientHeight } = document.documentElement;
  const left = Math.max(GAP, Math.min(rect.left, clientWidth - width - GAP));
  const isFree = (top) => top >= 0 && top + height <= clientHeight
    && !(focus && left < focus.right && left + width > focus.left && top < focus.bottom && top + height > focus.top);
  const top = [rect.bottom + GAP, rect.top - GAP - height].find(isFree);
  return top === undefined ? null : { left, top };
}

/** What has the focus; undefined where that is the page or a dialog, which is nothing to cover. */
function inFocus() {
  const element = focused();
  return element?.matches("body, main, [data-testid=stMain], [role=dialog]") ? undefined : element;
}

/** The label that Streamlit draws over a widget of its own, whose input doesn't know it. */
function labelOf(element) {
  return element.closest("[data-testid=stElementContainer]")?.querySelector("[data-testid=stWidgetLabel] p");
}

// Leads a newcomer along the path: a card beside the control that a step is about, the rest slightly dimmed and still usable.
//
// The card is a dialog that isn't modal. It takes the focus as it appears, and from then on only from somebody who has it
// there, or who works with the keyboard; what it says is announced either way.
import { attribute, node, put } from "../../../../transformer/frontend/dom.js";
import { openPage, pageLink } from "../../../../transformer/frontend/page_link.js";
import { PATH } from "./path.js";

const SEEN = "headsup-start";
const LOOK_MS = 200; // between two looks at what has been done, and where the control is now
const REVEAL_MS = 1200; // for which a control that has just come is scrolled to: what is around it may still be growing
const HEADER = 70; // pixels at the top of the window that Streamlit's own bar covers
const GAP = 14; // pixels between the control and the card
const EDGE = 10; // pixels between the card and the window's edge
const NARROW = 640; // pixels of a window in which the card lies below, as wide as the window

export class Start {
  /** parts: the overlay's. It is shown by `begin`. */
  constructor(parts) {
    this.parts = parts;
    parts.next.addEventListener("click", () => this.go(this.step + 1));
    parts.previous.addEventListener("click", () => this.go(this.step - 1));
    parts.skip.addEventListener("click", () => this.end());
    parts.toControl.addEventListener("click", () => this.focusControl());
    document.addEventListener("keydown", (event) => {
      this.isByKey = true;
      if (event.key !== "Escape" || !this.isOn || event.defaultPrevented || isOpenAbove(event)) return;
      event.preventDefault();
      this.end();
    });
    document.addEventListener("pointerdown", () => (this.isByKey = false), { capture: true });
    for (const kind of ["wheel", "touchmove", "keydown"]) addEventListener(kind, () => (this.revealUntil = 0), { capture: true, passive: true });
    for (const kind of ["scroll", "resize"]) addEventListener(kind, () => this.isOn && this.place(), { capture: true, passive: true });
  }

  get isOn() {
    return !this.parts.card.hidden;
  }

  /** Show it to who has never seen it. */
  offer() {
    if (!wasSeen()) this.begin();
  }

  begin() {
    remember();
    this.isByKey = false;
    this.parts.card.hidden = false;
    document.documentElement.toggleAttribute("data-starting", true);
    this.go(0, true);
    clearInterval(this.looking);
    this.looking = setInterval(() => this.look(), LOOK_MS);
  }

  end() {
    clearInterval(this.looking);
    const hadFocus = this.parts.card.contains(this.parts.card.getRootNode().activeElement);
    this.parts.card.hidden = this.parts.spot.hidden = true;
    document.documentElement.toggleAttribute("data-starting", false);
    /** @type {HTMLElement | null} */
    const main = document.querySelector("[data-testid=stMain]");
    if (hadFocus) main?.focus();
  }

  get record() {
    return PATH[this.step];
  }

  go(step, takesFocus = false) {
    const { card } = this.parts;
    const hadFocus = takesFocus || card.contains(card.getRootNode().activeElement);
    if (step >= PATH.length) return this.end();
    this.step = Math.max(0, step);
    this.isDone = false;
    this.control = null;
    this.before = undefined;
    this.isAwaited = this.record.at.length > 0; // the control may not be there yet, nor its page
    this.say();
    this.turnToPage();
    this.look();
    if (hadFocus) card.focus({ preventScroll: true });
  }

  // A step that was gone back to, or on to, may be on another page.
  turnToPage() {
    const { page } = this.record;
    if (page && page !== openPage()) pageLink(page)?.click();
  }

  say() {
    const { parts, record } = this;
    const isLast = this.step === PATH.length - 1;
    put(parts.cardTitle, record.title);
    put(parts.cardPlace, `${this.step + 1} of ${PATH.length}`);
    put(parts.said, this.isDone ? record.seen : record.ask);
    attribute(parts.card, "data-done", String(this.isDone));
    put(parts.next, isLast ? "Done" : "Next");
    parts.previous.hidden = this.step === 0;
    parts.skip.hidden = isLast;
    parts.toControl.hidden = this.isDone || !record.at.length;
    parts.ways.replaceChildren(...(record.ways ?? []).filter(pageLink).map((title) => {
      const way = node("button", "");
      way.type = "button";
      put(way, title);
      way.addEventListener("click", () => {
        this.end();
        pageLink(title)?.click();
      });
      return way;
    }));
  }

  look() {
    if (!this.isOn) return;
    const { record } = this;
    if (!this.isDone) {
      const now = record.watch?.(find);
      if (this.isAwaited && this.target) {
        this.isAwaited = false;
        this.before = now;
      }
      if (!this.isAwaited && record.isDone(find, this.before, now, openPage())) {
        this.isDone = true;
        this.control = null;
        this.say();
        if (this.isByKey) this.parts.next.focus({ preventScroll: true });
      }
    }
    this.place();
    if (this.control && performance.now() < this.revealUntil) reveal(this.control);
  }

  get target() {
    const selectors = (this.isDone && this.record.then) || this.record.at;
    return selectors.map(find).find((element) => element?.checkVisibility({ visibilityProperty: true })) ?? null;
  }

  place() {
    const { card, spot } = this.parts;
    const { target } = this;
    if (target !== this.control) this.revealUntil = performance.now() + REVEAL_MS;
    this.control = target;
    spot.hidden = !target;
    const isNarrow = innerWidth < NARROW;
    attribute(card, "data-narrow", String(isNarrow));
    const { width, height } = card.getBoundingClientRect();
    if (!target) {
      card.style.left = isNarrow ? "0" : `${Math.max(EDGE, innerWidth - width - 3 * GAP)}px`;
      card.style.top = `${innerHeight - height - (isNarrow ? 0 : 3 * GAP)}px`;
      return;
    }
    const rect = target.getBoundingClientRect();
    Object.assign(spot.style, { left: `${rect.left - 5}px`, top: `${rect.top - 5}px`, width: `${rect.width + 10}px`, height: `${rect.height + 10}px` });
    const [left, top] = isNarrow ? [0, innerHeight - height] : beside(rect, width, height);
    card.style.left = `${left}px`;
    card.style.top = `${top}px`;
  }

  focusControl() {
    const { target } = this;
    if (!target) return;
    const selector = "button, select, summary, [tabindex='0'], input, a[href]";
    const controls = target.matches(selector) ? [target] : [...target.querySelectorAll(selector)];
    (controls.find((each) => each.checkVisibility() && !each.disabled) ?? target).focus();
  }
}

/**
 * The card's place: below the control, above it, or to a side, wherever it covers nothing of it; else in the corner. It stays
 * within the window where the control is out of sight.
 */
function beside(rect, width, height) {
  const within = (start, size, length) => Math.max(EDGE, Math.min(start, length - size - EDGE));
  const at = (left, top) => [within(left, width, innerWidth), within(top, height, innerHeight)];
  if (rect.bottom + GAP + height < innerHeight) return at(rect.left, rect.bottom + GAP);
  if (rect.top - GAP - height > 0) return at(rect.left, rect.top - GAP - height);
  if (rect.right + GAP + width < innerWidth) return at(rect.right + GAP, rect.top);
  if (rect.left - GAP - width > 0) return at(rect.left - GAP - width, rect.top);
  return at(innerWidth, innerHeight);
}

function reveal(target) {
  const { top, bottom } = target.getBoundingClientRect();
  const below = innerWidth < NARROW ? innerHeight * 0.55 : innerHeight - 40;
  const isLong = innerWidth < NARROW || bottom - top > innerHeight - 2 * HEADER;
  if (top >= HEADER - 10 && (bottom <= below || (isLong && top < 2 * HEADER))) return;
  target.scrollIntoView({ block: isLong ? "start" : "center" });
  if (isLong) document.querySelector("[data-testid=stMain]").scrollBy(0, -HEADER);
}

/** An element by a selector, "component: selector" for one in a component with this test id; null if there is none. */
function find(selector) {
  const [, component, within] = /^([\w-]+): (.+)$/.exec(selector) ?? [];
  if (!component) return document.querySelector(selector);
  for (const { shadowRoot } of document.querySelectorAll("[data-testid=stMain] [data-testid=stBidiComponentIsolated]")) {
    const root = shadowRoot?.querySelector(`[data-testid=${component}]`);
    if (root) return root.querySelector(within);
  }
  return null;
}

function isOpenAbove(event) {
  return Boolean(document.querySelector("[data-testid=stPopoverBody], [data-testid=stDialog]"))
    || event.composedPath().some((each) => each.querySelector?.("[role=tooltip]:popover-open"));
}

// That it was seen is kept in the browser and nowhere else; where that can't be, for as long as the tab shows the app.
function wasSeen() {
  try {
    return localStorage.getItem(SEEN) === "seen" || globalThis.headsupStartSeen === true;
  } catch {
    return globalThis.headsupStartSeen === true;
  }
}

function remember() {
  globalThis.headsupStartSeen = true;
  try {
    localStorage.setItem(SEEN, "seen");
  } catch {
    // The tab remembers.
  }
}

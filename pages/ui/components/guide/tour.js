// Runs the tour: a ring around what a step is about, and a card beside it that covers neither that nor what has to be
// pressed. What a step has changed in the model is undone as the step is left.
//
// The card is a dialog that isn't modal. It takes the focus as it appears, and from then on only from somebody who has it
// there, or who works with the keyboard; what it says is announced either way.
import { store, stored } from "../../../../transformer/frontend/browser_storage.js";
import { attribute, isComposing, isVisible, node, put } from "../../../../transformer/frontend/dom.js";
import { asText, changesIn, changesOn } from "../../../../transformer/frontend/changes.js";
import { pageState } from "../../../../transformer/frontend/page/page_state.js";
import { openPage, pageLink } from "../../host/page_link.js";
import { inComponents } from "./in_components.js";
import { ELSEWHERE, PATH } from "./tour_steps.js";
import { placeCard } from "./card_position.js";

const SEEN = "headsup-start";
const NARROW = 640; // pixels of a window in which the card lies above or below, as wide as the window
const LOOK_MS = 200; // between two looks at what has been done, and where the control is now
const REVEAL_MS = 1200; // for which a control that has just come is scrolled to: what is around it may still be growing
const HEADER = 70; // pixels at the top of the window that Streamlit's own bar covers
const MENU = ".shell-menu"; // of the shell; what has to be pressed in it is there while it is open

export class Tour {
  /** parts: the overlay's. It is shown by `begin`. */
  constructor(parts) {
    this.parts = parts;
    parts.next.addEventListener("click", () => this.go(this.step + 1));
    parts.previous.addEventListener("click", () => this.go(this.step - 1));
    parts.skip.addEventListener("click", () => this.end());
    parts.toControl.addEventListener("click", () => this.focusControl());
    document.addEventListener("keydown", (event) => {
      this.isByKey = true;
      if (event.key !== "Escape" || !this.isOn || event.defaultPrevented || isComposing(event) || isOpenAbove(event)) return;
      event.preventDefault();
      this.end();
    });
    document.addEventListener("pointerdown", () => (this.isByKey = false), { capture: true });
    for (const kind of ["wheel", "touchmove", "keydown"]) addEventListener(kind, () => (this.revealUntil = 0), { capture: true, passive: true });
    for (const kind of ["scroll", "resize"]) addEventListener(kind, () => this.isOn && this.positionCard(), { capture: true, passive: true });
  }

  get isOn() {
    return !this.parts.card.hidden;
  }

  /** The model, and the codes of what is changed in it. */
  get changed() {
    const state = pageState();
    return { model: state.get("model"), codes: changesOn(state.get("changes")) };
  }

  begin() {
    remember();
    this.isByKey = false;
    this.parts.card.hidden = false;
    document.documentElement.toggleAttribute("data-starting", true);
    this.go(PATH[0].page === openPage() ? 0 : -1, true);
    clearInterval(this.looking);
    this.looking = setInterval(() => this.look(), LOOK_MS);
  }

  end() {
    this.leaveStep();
    clearInterval(this.looking);
    const hadFocus = this.parts.card.contains(this.parts.card.getRootNode().activeElement);
    this.parts.card.hidden = this.parts.spot.hidden = true;
    document.documentElement.toggleAttribute("data-starting", false);
    /** @type {HTMLElement | null} */
    const main = document.querySelector("[data-testid=stMain]");
    if (hadFocus) main?.focus();
  }

  leaveStep() {
    const { made } = this;
    this.made = undefined;
    if (made) takeBack(made);
  }

  get record() {
    return PATH[this.step] ?? ELSEWHERE;
  }

  go(step, takesFocus = false) {
    const { card } = this.parts;
    this.leaveStep();
    const hadFocus = takesFocus || card.contains(card.getRootNode().activeElement);
    if (step >= PATH.length) return this.end();
    this.step = step;
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
    put(parts.cardPlace, this.step < 0 ? "" : `${this.step + 1} of ${PATH.length}`);
    put(parts.said, this.isDone ? record.seen : record.ask);
    attribute(parts.card, "data-done", String(this.isDone));
    put(parts.next, isLast ? "Done" : "Next");
    parts.previous.hidden = this.step <= 0;
    parts.skip.hidden = isLast;
    parts.toControl.hidden = this.isDone || !record.at.length;
    parts.ways.replaceChildren(...(record.ways ?? []).filter(pageLink).map((title) => {
      const way = node("button", "");
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
      const now = record.watch?.(find, this.changed.codes);
      if (this.isAwaited && this.target) {
        this.isAwaited = false;
        this.before = now;
      }
      if (!this.isAwaited && record.isDone(find, this.before, now, openPage())) {
        this.isDone = true;
        this.control = null;
        if (record.closes) this.settle(record.closes, this.before);
        this.say();
        if (this.isByKey) this.parts.next.focus({ preventScroll: true });
      }
    }
    this.positionCard();
    if (this.control && performance.now() < this.revealUntil) reveal(this.control, this.isClear);
  }

  // Of a step that changes the model: what it has changed; and what covers what there is to see now is closed.
  settle(closes, before) {
    const { model, codes } = this.changed;
    this.made = { model, codes: codes.filter((code) => !before.includes(code)) };
    find(closes)?.click();
  }

  get target() {
    const selectors = (this.isDone && this.record.then) || this.record.at;
    return selectors.map(find).find((element) => element && isVisible(element)) ?? null;
  }

  positionCard() {
    const { card, spot } = this.parts;
    const { target } = this;
    if (target !== this.control) {
      this.revealUntil = performance.now() + REVEAL_MS;
      if (target && this.isByKey && target.closest(MENU)) this.focusControl(); // the menu is open: the keyboard goes on there
    }
    this.control = target;
    spot.hidden = !target;
    const kept = [find(`shell: ${MENU}`), this.record.keep && find(this.record.keep)];
    const keep = kept.flatMap((element) => element?.getBoundingClientRect() ?? []);
    const rect = target?.getBoundingClientRect();
    if (rect) Object.assign(spot.style, { left: `${rect.left - 5}px`, top: `${rect.top - 5}px`, width: `${rect.width + 10}px`, height: `${rect.height + 10}px` });
    const isNarrow = innerWidth < NARROW;
    attribute(card, "data-narrow", String(isNarrow));
    const { width, height } = card.getBoundingClientRect();
    const position = placeCard({ width, height }, rect, keep, { width: innerWidth, height: innerHeight }, isNarrow);
    card.style.left = `${position.left}px`;
    card.style.top = `${position.top}px`;
    this.isClear = !position.covered;
  }

  focusControl() {
    const { target } = this;
    if (!target) return;
    const selector = "button, select, summary, [tabindex='0'], input, a[href]";
    const controls = target.matches(selector) ? [target] : [...target.querySelectorAll(selector)];
    (controls.find((control) => isVisible(control) && !control.disabled) ?? target).focus();
  }
}

/** Scroll to what a step is about, unless it is in sight and the card beside it; so that there is room for the card. */
function reveal(target, isClear) {
  const { top, bottom } = target.getBoundingClientRect();
  const isAtTop = Math.abs(top - HEADER) < 10;
  if (isAtTop || (isClear && top >= HEADER - 10 && bottom <= innerHeight) || target.closest(MENU)) return;
  target.scrollIntoView({ block: "start" });
  document.querySelector("[data-testid=stMain]").scrollBy(0, -HEADER);
}

/** Take back what a step has changed: now, or when its model is shown again. @param {{ model: string | null, codes: string[] }} made */
export function takeBack({ model, codes }, state = pageState()) {
  const tryIt = () => {
    if (state.get("model") !== model) return;
    unfollow();
    state.set({ changes: asText(changesIn(state.get("changes")).filter(({ code }) => !codes.includes(code))) });
  };
  const unfollow = state.follow(tryIt);
  tryIt();
}

/** An element by a selector, "component: selector" for one in a component with this test id; null if there is none. */
function find(selector) {
  const [, component, within] = /^([\w-]+): (.+)$/.exec(selector) ?? [];
  return component ? inComponents(`[data-testid=${component}] ${within}`)[0] ?? null : document.querySelector(selector);
}

function isOpenAbove(event) {
  return Boolean(document.querySelector("[data-testid=stPopoverBody], [data-testid=stDialog]"))
    || event.composedPath().some((element) => element.querySelector?.("[role=tooltip][data-raised]"));
}

// That it was seen is kept in the browser and nowhere else.
export const wasSeen = () => stored(SEEN, "localStorage") === true;

export const remember = () => store(SEEN, true, "localStorage");

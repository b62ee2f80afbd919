// Turns presentation mode on and off: no header, large type, and navigation by clicker from view to view.
//
// It is a state of the tab: it stays from page to page and over a reload. Python is told of it, and draws its figures larger.
import { store, stored } from "../../../../transformer/frontend/browser_storage.js";
import { attribute, isComposing, isVisible } from "../../../../transformer/frontend/dom.js";
import { PAGE_LINK, openPage } from "../../host/page_link.js";
import { inComponents } from "./in_components.js";
import { areKeysOn, isTyped } from "./shortcuts.js";

const KEPT = "headsup-presenting";
const WIDE = 800; // pixels of a window in which figures with large labels have room
const TOP = 12; // pixels between the window's edge and the view that is turned to
const NEAR = 4; // the page's type sizes between two beginnings that are one to the eye, as a title's and its figure's
const AGAIN = 0.15; // of the window's height that is seen again where a view goes on beyond it
const BESIDE = ".st-key-side_by_side_thirds_train"; // one view: parts that stay beside one another
const VIEWS = "h1, h2, [data-testid=stPlotlyChart], [class*=st-key-view_], [class*=st-key-side_by_side] > *, .st-key-lesson_asked";
const VIEWS_WITHIN = "h1, section[aria-label], figure, .rung, .inside, .inside :is(.tensor, .cell, .prose, details[open])";
const AWAKE_MS = 3000; // for which the bar is seen after the hand has moved
const LEAST = 90; // pixels of the height of a view
const FORWARD = ["PageDown", "ArrowRight"], BACK = ["PageUp", "ArrowLeft"];
/** A clicker's keys are taken wherever the focus is; the arrows only where nothing else goes by them. */
const ALWAYS = ["PageDown", "PageUp"];

export class Presentation {
  /** parts: the overlay's; within: the style sheet of presented instruments; tell(isLarge): for Python. */
  constructor(parts, within, tell) {
    this.parts = parts;
    this.within = within;
    this.tell = tell;
    parts.forward.addEventListener("click", () => this.turn(1));
    parts.back.addEventListener("click", () => this.turn(-1));
    parts.point.addEventListener("click", () => this.point(!this.isPointing));
    parts.leave.addEventListener("click", () => this.set(false));
    document.addEventListener("keydown", (event) => this.onKey(event), { capture: true });
    document.addEventListener("pointerdown", () => { this.isByHand = true; }, { capture: true, passive: true });
    document.addEventListener("pointermove", ({ clientX, clientY }) => {
      if (this.isOn) this.wake();
      if (this.isPointing) parts.dot.style.transform = `translate(${clientX}px, ${clientY}px)`;
    }, { capture: true, passive: true });
  }

  /** Go on presenting in a tab that was reloaded meanwhile. */
  resume() {
    if (stored(KEPT)) this.set(true);
  }

  set(isOn) {
    if (isOn === this.isOn) return;
    this.isOn = isOn;
    document.documentElement.toggleAttribute("data-presenting", isOn);
    this.within.disabled = !isOn;
    this.parts.bar.hidden = !isOn;
    this.wake();
    if (!isOn) this.point(false);
    store(KEPT, isOn || null);
    this.tell(isOn && innerWidth >= WIDE);
    // What is drawn in pixels reads the page's type anew.
    dispatchEvent(new Event("resize"));
  }

  /** Show the bar, and hide it again when the hand rests. */
  wake() {
    clearTimeout(this.sleeping);
    attribute(this.parts.bar, "data-awake", "true");
    this.sleeping = setTimeout(() => attribute(this.parts.bar, "data-awake", "false"), AWAKE_MS);
  }

  point(isOn) {
    this.isPointing = isOn;
    this.parts.dot.hidden = !isOn;
    attribute(this.parts.point, "aria-pressed", String(isOn));
  }

  onKey(event) {
    if (event.key === "Tab") this.isByHand = false;
    if (!this.isOn || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return;
    const { key } = event;
    const [target] = event.composedPath();
    const takes = (act) => {
      event.preventDefault();
      event.stopImmediatePropagation();
      act();
    };
    // What was only clicked has the focus, too: the arrows are for the page, and don't change an answer.
    const isFree = ALWAYS.includes(key) || (this.isByHand && !isTyped(target)) || !usesArrows(target);
    if (FORWARD.includes(key) && isFree) takes(() => this.turn(1));
    else if (BACK.includes(key) && isFree) takes(() => this.turn(-1));
    else if (key === "Escape" && !isOccupied(event)) takes(() => this.set(false));
    else if (key.toLowerCase() === "n" && !isTyped(target) && areKeysOn()) takes(() => turnStep(1));
    else if (key.toLowerCase() === "l" && !isTyped(target)) takes(() => this.point(!this.isPointing));
  }

  /** To the next view or the one before; past the last of a lesson's step to the next step, of a page to the next page. */
  turn(by) {
    const main = document.querySelector("[data-testid=stMain]");
    const [stops, tolerance] = [stopsIn(main), nearness()];
    const stop = by > 0 ? stops.find((top) => top > TOP + tolerance) : stops.filter((top) => top < TOP - tolerance).at(-1);
    const before = main.scrollTop;
    if (stop !== undefined) main.scrollBy(0, stop - TOP);
    if (main.scrollTop !== before) return;
    if (!document.querySelector(".st-key-lesson_moves")) turnPage(by);
    else if (!document.querySelector(".st-key-room_teacher")) turnStep(by); // a class is led on by N, never by accident
  }
}

/** Where to stop on a page, in pixels from the window's top: where a view begins, and further on while there is more of it. */
function stopsIn(main) {
  const tops = viewsIn(main);
  const end = main.querySelector("[data-testid=stMainBlockContainer]").lastElementChild.getBoundingClientRect().bottom;
  const again = AGAIN * innerHeight;
  return tops.flatMap((top, at) => {
    const length = (tops[at + 1] ?? end - nearness()) - top;
    const count = Math.max(1, Math.ceil((length - again) / (innerHeight - TOP - again)));
    return Array.from({ length: count }, (_, part) => top + (part / count) * length);
  });
}

/** Where the views of a page begin, in pixels from the window's top, those that are one to the eye only once. */
function viewsIn(main) {
  const isPart = (view) => (view.getRootNode().host ?? view).parentElement.closest(BESIDE);
  const views = [...main.querySelectorAll(`${VIEWS}, ${BESIDE}`), ...inComponents(VIEWS_WITHIN, main)].filter((view) => !isPart(view));
  const boxes = views.filter((view) => isVisible(view)).map((view) => [view.getBoundingClientRect(), view]);
  const tall = boxes.filter(([{ height }, view]) => height >= LEAST || /^H\d$/.test(view.tagName));
  const tops = tall.map(([{ top }]) => top).sort((one, other) => one - other);
  const tolerance = nearness();
  return tops.filter((top, at) => at === 0 || top - tops[at - 1] > tolerance);
}

function nearness() {
  return NEAR * parseFloat(getComputedStyle(document.documentElement).fontSize);
}

/** A lesson's next step, or the one before, from its top. */
function turnStep(by) {
  /** @type {HTMLButtonElement | null} */
  const button = document.querySelector(`.st-key-${by > 0 ? "learn_next" : "learn_previous"} button`);
  if (!button || button.disabled) return;
  button.click();
  document.querySelector("[data-testid=stMain]").scrollTo(0, 0);
}

function turnPage(by) {
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const anchors = document.querySelectorAll(PAGE_LINK);
  const links = [...anchors];
  const here = links.findIndex(({ textContent }) => textContent.trim().endsWith(openPage()));
  if (here >= 0) links[here + by]?.click();
}

/** Whether an element goes by the arrow keys itself. */
function usesArrows(element) {
  return isTyped(element) || Boolean(element.closest?.("canvas, [role=slider], [role=listbox], [role=option], [role=radiogroup], [type=radio], [type=range], [role=tablist], [role=application], [role=group][tabindex], [tabindex='0']:not(button, a, summary)"));
}

/** Whether Escape has something else to close first. */
function isOccupied(event) {
  const [target] = event.composedPath();
  return isTyped(target) || Boolean(document.querySelector("[data-testid=stPopoverBody], [data-testid=stDialog]"))
    || event.composedPath().some((element) => element.querySelector?.("[data-raised]"));
}

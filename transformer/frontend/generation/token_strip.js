// Draws the tokens of a text, underlined by probability and coloured by a head's attention, both on scales from 0 to 1.
// The strip is one tab stop, and keys move between tokens. Nodes survive updates, so nothing flickers and the focus stays.
import { node, property, put } from "../dom.js";
import { percent } from "../number_format.js";
import { indexOf } from "./token_descriptions.js";

const BLINK_MS = 600; // driven by the clock of the writing: a CSS animation would draw every frame
const STEPS = 50; // steps of a scale: a token that stays in its step costs nothing
const FAINTEST = 0.12; // opacity of a line, which tells generated tokens from the prompt
const STRONGEST = 0.55; // opacity of a background on which the text keeps a contrast of 4.5
const READ_BELOW = 0.1; // opacity up to which the prompt's paler letters keep it, too

/** The opacity of the line below a token of this probability. */
export function lineOf(probability) {
  return FAINTEST + (1 - FAINTEST) * stepped(probability);
}

/** The opacity of the background of a token with this weight. */
export function washOf(weight) {
  return STRONGEST * stepped(weight);
}

function stepped(share) {
  return Math.round(Math.min(Math.max(share, 0), 1) * STEPS) / STEPS;
}

const IN_RGB = { "--accent": "0 114 178", "--attention": "213 94 0" }; // approximately, for browsers without color-mix

/** A colour of the style sheet with this opacity. */
function faded(name, strength) {
  const share = `${Math.round(100 * strength)}%`;
  isMixing ??= CSS.supports("color", "color-mix(in srgb, red, red)");
  return isMixing ? `color-mix(in srgb, var(${name}) ${share}, transparent)` : `rgb(${IN_RGB[name]} / ${share})`;
}

/** @type {boolean | undefined} */
let isMixing;

/** Have a node show a token: its text, its line, and its kind. */
export function dress(span, { shown, label, flag, probability: p }) {
  const isRated = flag !== "p" && p != null;
  put(span, shown);
  span.setAttribute("aria-label", isRated ? `${label}, ${percent(p)}` : label);
  property(span, "box-shadow", isRated ? `0 3px 0 ${faded("--accent", lineOf(p))}` : "");
  const names = [flag === "p" ? "prompt" : "written"];
  if (flag === "h") names.push("picked");
  if (shown === " ") names.push("space");
  if (shown.startsWith("\n")) names.push("newline");
  if (shown.trim() === label && label.length > 1 && /^[<[].*[>\]]$/.test(label)) names.push("special");
  span.className = `token ${names.join(" ")}`;
}

export class TokenStrip {
  /** onVisit(index): a token was clicked, or reached by keys. onScroll(): tokens have moved under the pointer. */
  constructor({ strip }, onVisit, onScroll) {
    this.strip = strip;
    this.spans = [];
    this.dressed = []; // what each span shows, and its background's opacity
    this.washes = [];
    this.atEnd = true;
    this.top = 0; // the last scroll position
    this.onVisit = onVisit;
    // One listener for all tokens, as spans come and go.
    strip.addEventListener("click", (event) => {
      const index = indexOf(event);
      if (index !== null) this.visit(index);
    });
    strip.addEventListener("keydown", (event) => this.onKey(event));
    strip.addEventListener("scroll", () => {
      this.top = strip.scrollTop;
      this.atEnd = strip.scrollHeight - this.top - strip.clientHeight < 24;
      onScroll();
    });
  }

  onKey(event) {
    const last = this.spans.length - 1;
    const here = this.focusable;
    const target = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last }[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.visit(Math.min(Math.max(target, 0), last));
  }

  visit(index) {
    if (!this.spans[index]) return;
    this.makeFocusable(index);
    this.spans[index].focus({ preventScroll: true }); // only the box scrolls, never the page
    this.reveal(index);
    this.onVisit(index);
  }

  /** Blink the cursor after the last token. now: milliseconds. */
  blink(now) {
    const isDim = String(Math.floor(now / BLINK_MS) % 2 === 1);
    if (this.strip.dataset.dim !== isDim) this.strip.dataset.dim = isDim;
  }

  /** count: tokens on screen, the prompt's included; look: from `lookOf`; live: whether more will follow. */
  update(generated, count, look, live) {
    this.showTokens(generated, count);
    this.showAttention(look);
    this.strip.dataset.live = live;
  }

  /** Scroll to the end, unless the visitor has scrolled up. */
  follow() {
    if (this.strip.scrollTop < this.top - 24) this.atEnd = false; // the visitor has scrolled, and the event arrives later
    if (!this.atEnd) return;
    this.strip.scrollTop = this.strip.scrollHeight;
    this.top = this.strip.scrollTop;
  }

  showTokens(generated, count) {
    const added = document.createDocumentFragment();
    for (let index = 0; index < count; index++) {
      const token = generated.at(index);
      const old = this.dressed[index];
      if (old === token || (old && old.shown === token.shown && old.label === token.label && old.flag === token.flag
        && old.probability === token.probability)) continue;
      this.dressed[index] = token;
      if (!this.spans[index]) this.spans[index] = this.makeSpan(index, added);
      dress(this.spans[index], token);
      if (this.query === index) this.spans[index].classList.add("query");
      if (this.selected === index) this.spans[index].classList.add("selected");
    }
    if (added.childNodes.length) this.strip.append(added);
    for (const span of this.spans.splice(count)) span.remove();
    this.dressed.length = count;
    if (this.washes.length > count) this.washes.length = count;
  }

  makeSpan(index, parent) {
    const span = node("span", "token", parent);
    span.dataset.index = index;
    span.dataset.testid = "live-text-token";
    span.setAttribute("role", "option");
    span.setAttribute("aria-selected", "false");
    span.tabIndex = -1;
    return span;
  }

  showAttention(look) {
    this.spans.forEach((span, index) => {
      const wash = look ? washOf(look.weight(index) ?? 0) : 0;
      if (wash === (this.washes[index] ?? 0)) return;
      this.washes[index] = wash;
      // No custom property: those are inherited, which takes half as long again.
      property(span, "background-color", wash ? faded("--attention", wash) : "");
      property(span, "color", wash > READ_BELOW ? "var(--ink)" : "");
    });
    const query = look?.query;
    if (this.query === query) return;
    this.spans[this.query]?.classList.remove("query");
    this.query = query;
    this.spans[query]?.classList.add("query");
  }

  showSelection(selected, live) {
    if (this.selected !== selected) {
      const before = this.spans[this.selected];
      before?.classList.remove("selected");
      before?.setAttribute("aria-selected", "false");
      this.selected = selected;
      if (!live) this.reveal(selected);
    }
    this.spans[selected]?.classList.add("selected");
    this.spans[selected]?.setAttribute("aria-selected", "true");
    // A focused token keeps the tab stop: the newest one must not take it from a visitor who reads by keys.
    const focused = this.spans[this.focusable]?.matches(":focus");
    if (!focused) this.makeFocusable(Math.min(selected, this.spans.length - 1));
  }

  /** Focus the token that has the tab stop. */
  focus() {
    this.spans[this.focusable]?.focus({ preventScroll: true });
  }

  makeFocusable(index) {
    const before = this.spans[this.focusable];
    if (before && this.focusable !== index) before.tabIndex = -1;
    this.focusable = index;
    if (this.spans[index]) this.spans[index].tabIndex = 0;
  }

  /** Scroll the box, never the page, until a token is visible. */
  reveal(index) {
    const span = this.spans[index];
    if (!span) return;
    const box = this.strip.getBoundingClientRect();
    const rect = span.getBoundingClientRect();
    if (rect.top < box.top + 8) this.strip.scrollTop -= box.top + 8 - rect.top;
    else if (rect.bottom > box.bottom - 8) this.strip.scrollTop += rect.bottom - box.bottom + 8;
  }
}

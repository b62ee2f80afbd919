// The tokens of a text, tinted and underlined. One tab stop: keys go from token to token. Its nodes are kept from
// update to update, so that nothing flickers and a token that has the focus keeps it.
import { SEQUENTIAL, colourAt } from "../colours.js";
import { node, property, put } from "../dom.js";
import { chance, indexOf } from "./text.js";

const BLINK_MS = 600; // by the clock of the writing: an animation of CSS has every frame drawn
const STOPS = 33; // tints: one that stays as it is from update to update costs nothing

const TINTS = Array.from({ length: STOPS }, (_, at) => {
  const colour = colourAt(SEQUENTIAL, at / (STOPS - 1));
  return { paper: `rgb(${colour.join(", ")})`, ink: inkOn(colour) };
});

/** What a probability is drawn with: { paper, ink }. */
export function tintOf(probability) {
  return TINTS[Math.round(Math.min(Math.max(probability, 0), 1) * (STOPS - 1))];
}

/** Black or white, whichever has the higher contrast (WCAG relative luminance) on a colour. */
function inkOn(colour) {
  const [r, g, b] = colour.map((level) => {
    const channel = level / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}

/** Let a node show a token: its text, its tint, and what it is. */
export function dress(span, { shown, label, flag, probability: p }) {
  const tint = flag !== "p" && p != null ? tintOf(p) : null;
  put(span, shown);
  span.setAttribute("aria-label", tint ? `${label}, ${chance(p)}` : label);
  property(span, "background-color", tint?.paper ?? "");
  property(span, "color", tint?.ink ?? "");
  const names = [flag === "p" ? "prompt" : "written"];
  if (flag === "h") names.push("picked");
  if (shown === " ") names.push("space");
  if (shown.startsWith("\n")) names.push("newline");
  if (shown.trim() === label && label.length > 1 && /^[<[].*[>\]]$/.test(label)) names.push("special");
  span.className = `token ${names.join(" ")}`;
}

export class Strip {
  /** onVisit(index): a token was clicked or reached with keys. onScroll(): what was over a token isn't any more. */
  constructor({ strip }, onVisit, onScroll) {
    this.strip = strip;
    this.spans = [];
    this.dressed = []; // what each span shows, and the level of its attention bar
    this.levels = [];
    this.atEnd = true;
    this.onVisit = onVisit;
    // One listener for all tokens: spans come and go at the end of the text without any bookkeeping.
    strip.addEventListener("click", (event) => {
      const index = indexOf(event);
      if (index !== null) this.visit(index);
    });
    strip.addEventListener("keydown", (event) => this.onKey(event));
    strip.addEventListener("scroll", () => {
      this.atEnd = strip.scrollHeight - strip.scrollTop - strip.clientHeight < 24;
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
    this.spans[index].focus({ preventScroll: true }); // the page must not jump: only the box scrolls
    this.reveal(index);
    this.onVisit(index);
  }

  /** The sign of the writing after the last token goes dim and bright again. now: milliseconds. */
  blink(now) {
    const isDim = String(Math.floor(now / BLINK_MS) % 2 === 1);
    if (this.strip.dataset.dim !== isDim) this.strip.dataset.dim = isDim;
  }

  /** count: how many tokens are seen, given ones included; look: as `lookOf` gives it; live: more are on their way. */
  update(story, count, look, live) {
    this.showTokens(story, count);
    this.showAttention(look);
    this.strip.dataset.live = live;
  }

  /** Scroll to the end, unless somebody has scrolled up. */
  follow() {
    if (this.atEnd) this.strip.scrollTop = this.strip.scrollHeight;
  }

  showTokens(story, count) {
    const added = document.createDocumentFragment();
    for (let index = 0; index < count; index++) {
      const token = story.at(index);
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
    if (this.levels.length > count) this.levels.length = count;
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
      // Tenths of the largest weight, half a pixel each: most tokens keep their level from step to step.
      const level = look ? Math.round((10 * (look.weight(index) ?? 0)) / look.largest) : 0;
      if (level === (this.levels[index] ?? 0)) return;
      this.levels[index] = level;
      // Not through a property of our own: those are inherited, which costs half as much again.
      property(span, "box-shadow", level ? `0 ${level / 2}px 0 var(--attention)` : "");
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
    // A focused token keeps the tab stop: the newest token must not take it away while somebody reads with the keys.
    const focused = this.spans[this.focusable]?.matches(":focus");
    if (!focused) this.makeFocusable(Math.min(selected, this.spans.length - 1));
  }

  makeFocusable(index) {
    const before = this.spans[this.focusable];
    if (before && this.focusable !== index) before.tabIndex = -1;
    this.focusable = index;
    if (this.spans[index]) this.spans[index].tabIndex = 0;
  }

  /** Scroll the box, never the page, until a token can be seen. */
  reveal(index) {
    const span = this.spans[index];
    if (!span) return;
    const box = this.strip.getBoundingClientRect();
    const place = span.getBoundingClientRect();
    if (place.top < box.top + 8) this.strip.scrollTop -= box.top + 8 - place.top;
    else if (place.bottom > box.bottom - 8) this.strip.scrollTop += place.bottom - box.bottom + 8;
  }
}

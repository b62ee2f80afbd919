// The tokens of a text, tinted and underlined. One tab stop: keys go from token to token. Its nodes are kept from
// update to update, so that nothing flickers and a token that has the focus keeps it.
import { node, property, put } from "../../../../transformer/instrument/dom.js";
import { indexOf, percent } from "./text.js";

/** Black or white, whichever has the higher contrast (WCAG relative luminance) on a "#rrggbb" colour. */
function inkOn(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const channel = parseInt(hex.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}

export class Strip {
  /** onVisit(index): a token was clicked or reached with keys. onScroll(): what was over a token isn't any more. */
  constructor({ strip, ramp }, onVisit, onScroll) {
    this.strip = strip;
    this.ramp = ramp;
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

  update(text) {
    this.showStops(text.data.stops);
    this.showTokens(text);
    this.showAttention(text);
    this.strip.dataset.live = text.data.live;
  }

  /** Scroll to the end, unless somebody has scrolled up. */
  follow() {
    if (this.atEnd) this.strip.scrollTop = this.strip.scrollHeight;
  }

  showStops(stops) {
    if (this.stops?.join() === stops.join()) return;
    this.stops = stops;
    this.inks = stops.map(inkOn);
    this.ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    this.dressed = []; // every tint is to be set again
  }

  showTokens({ data: { kinds, kind, flags, probability } }) {
    const added = document.createDocumentFragment();
    for (let index = 0; index < kind.length; index++) {
      const [shown, label] = [kinds.shown[kind[index]], kinds.label[kind[index]]];
      const [flag, p] = [flags[index], probability[index]];
      const old = this.dressed[index];
      if (old && old.shown === shown && old.label === label && old.flag === flag && old.p === p) continue;
      this.dressed[index] = { shown, label, flag, p };
      if (!this.spans[index]) this.spans[index] = this.makeSpan(index, added);
      this.dress(this.spans[index], this.dressed[index]);
    }
    this.strip.append(added);
    for (const span of this.spans.splice(kind.length)) span.remove();
    this.dressed.length = kind.length;
    this.levels.length = kind.length;
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

  dress(span, { shown, label, flag, p }) {
    const tinted = flag !== "p" && p != null;
    const stop = tinted ? Math.round(p * (this.stops.length - 1)) : 0;
    put(span, shown);
    span.setAttribute("aria-label", tinted ? `${label}, ${percent(p)}` : label);
    property(span, "background-color", tinted ? this.stops[stop] : "");
    property(span, "color", tinted ? this.inks[stop] : "");
    const names = [flag === "p" ? "prompt" : "written"];
    if (flag === "h") names.push("picked");
    if (shown === " ") names.push("space");
    if (shown.startsWith("\n")) names.push("newline");
    if (shown === label && label.length > 1 && /^[<[].*[>\]]$/.test(label)) names.push("special");
    span.className = `token ${names.join(" ")}`;
    if (this.query === Number(span.dataset.index)) span.classList.add("query");
    if (this.selected === Number(span.dataset.index)) span.classList.add("selected");
  }

  showAttention(text) {
    const { query } = text.data;
    this.spans.forEach((span, index) => {
      // Tenths of the largest weight, half a pixel each: most tokens keep their level from step to step.
      const level = text.largest ? Math.round((10 * (text.weight(index) ?? 0)) / text.largest) : 0;
      if (level === (this.levels[index] ?? 0)) return;
      this.levels[index] = level;
      // Not through a property of our own: those are inherited, which costs half as much again.
      property(span, "box-shadow", level ? `0 ${level / 2}px 0 var(--attention)` : "");
    });
    if (this.query !== query) this.spans[this.query]?.classList.remove("query");
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

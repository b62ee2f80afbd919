// The view of a text while a model writes it. Its nodes are made once, then kept and changed in place for every new
// `data`, so that nothing flickers and nothing on the page moves.
// Whatever comes from `data` reaches the page through textContent, attributes and CSS properties, never as HTML.

const COLUMNS = 64; // tokens in the picture
const ROWS = 10; // candidates
const SEND_EVERY_MS = 120; // a dragged slider sends many selections: only so often, and always the last one
const ECHO_MS = 5000; // how long a selection made here stands before Python has answered it

const views = new WeakMap();

function percent(p) {
  if (p == null) return "–";
  const value = 100 * p;
  if (value === 0) return "0 %";
  if (value < 0.001) return "<0.001 %";
  return `${value < 1 ? value.toPrecision(2) : value.toFixed(value > 99 && value < 100 ? 2 : 1)} %`;
}

function node(tag, className, parent) {
  const made = document.createElement(tag);
  made.className = className;
  parent?.append(made);
  return made;
}

// Setting what is already there would still cost a style recalculation: with 600 tokens at 8 updates a second it adds up.
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
function property(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

/** Black or white, whichever has the higher contrast (WCAG relative luminance) on a "#rrggbb" colour. */
function inkOn(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const channel = parseInt(hex.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000000" : "#ffffff";
}

class View {
  constructor(parent) {
    this.parts = {};
    for (const part of parent.querySelectorAll("[data-part]")) this.parts[part.dataset.part] = part;
    this.root = this.parts.root;
    this.spans = [];
    this.dressed = []; // what each span shows, and the level of its attention bar
    this.levels = [];
    this.atEnd = true;
    this.rows = Array.from({ length: ROWS }, () => this.makeRow());
    this.columns = Array.from({ length: COLUMNS }, () => {
      const column = node("span", "column", this.parts.columns);
      return { column, bar: node("i", "", column), label: node("b", "", column) };
    });
    this.listen();
  }

  makeRow() {
    const button = node("button", "", node("li", "", this.parts.candidates));
    button.type = "button";
    const label = node("span", "label", button);
    const track = node("span", "track", button);
    return {
      button, label, model: node("i", "model", track), sampled: node("i", "sampled", track),
      value: node("span", "value", button), tick: node("span", "tick", button),
    };
  }

  // One listener for all tokens: spans come and go at the end of the text without any bookkeeping.
  listen() {
    const { strip, timeline, previous, next, candidates, columns } = this.parts;
    const indexOf = (event) => {
      const index = event.target.closest?.("[data-index]")?.dataset.index;
      return index === undefined ? null : Number(index);
    };
    strip.addEventListener("click", (event) => {
      const index = indexOf(event);
      if (index !== null) this.visit(index);
    });
    strip.addEventListener("keydown", (event) => this.onKey(event));
    strip.addEventListener("scroll", () => {
      this.atEnd = strip.scrollHeight - strip.scrollTop - strip.clientHeight < 24;
      this.hideTip();
    });
    strip.addEventListener("focusin", (event) => this.tokenTip(event.target, indexOf(event)));
    for (const area of [strip, columns]) {
      area.addEventListener("pointerover", (event) => this.tokenTip(event.target.closest("[data-index]"), indexOf(event)));
      area.addEventListener("pointerleave", () => this.hideTip());
    }
    strip.addEventListener("focusout", () => this.hideTip());
    this.root.addEventListener("keydown", (event) => event.key === "Escape" && this.hideTip());

    timeline.addEventListener("input", () => this.goTo(Number(timeline.value) - 1));
    previous.addEventListener("click", () => this.goTo(this.place() - 1));
    next.addEventListener("click", () => this.goTo(this.place() + 1));

    candidates.addEventListener("click", (event) => {
      const row = this.rows.findIndex(({ button }) => button.contains(event.target));
      const { candidates: choice } = this.data;
      // The second click of a double click must not write the token twice: `asked` holds until new data come.
      if (row < 0 || choice.chosen === row || this.data.live || this.asked) return;
      this.asked = true;
      this.send("pick", { index: choice.index, id: choice.id[row] });
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

  /** Focus a token and, when the model wrote it, select it. */
  visit(index) {
    if (!this.spans[index]) return;
    this.makeFocusable(index);
    this.spans[index].focus({ preventScroll: true }); // the page must not jump: only the box scrolls
    this.reveal(index);
    if (this.data.flags[index] !== "p") this.select(index);
  }

  goTo(place) {
    const index = this.written[Math.min(Math.max(place, 0), this.written.length - 1)];
    if (index === undefined) return;
    this.select(index);
    this.reveal(index);
  }

  place() {
    const at = this.written.indexOf(this.selected);
    return at < 0 ? this.written.length : at;
  }

  // Shown at once, sent at most every SEND_EVERY_MS; data that were on their way meanwhile don't take it back.
  select(index) {
    if (index === this.selected) return;
    this.wanted = { index, until: performance.now() + ECHO_MS };
    this.showSelection();
    if (this.timer) return;
    this.send("select", index);
    let sent = index;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.root.isConnected && this.wanted && this.wanted.index !== sent) {
        sent = this.wanted.index;
        this.send("select", sent);
      }
    }, SEND_EVERY_MS);
  }

  update(data) {
    const started = performance.now();
    this.data = data;
    this.asked = false;
    if (this.wanted && (data.selected === this.wanted.index || started > this.wanted.until)) this.wanted = null;
    this.showStops();
    this.showTokens();
    this.showAttention();
    this.showSelection();
    this.showPicture();
    this.showCandidates();
    this.showStatus();
    const followsTheEnd = data.live || data.selected >= data.kind.length;
    if (followsTheEnd && this.atEnd) this.parts.strip.scrollTop = this.parts.strip.scrollHeight;
    this.root.dataset.updateMs = (performance.now() - started).toFixed(2);
  }

  showStops() {
    const { stops } = this.data;
    if (this.stops?.join() === stops.join()) return;
    this.stops = stops;
    this.inks = stops.map(inkOn);
    this.parts.ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    this.dressed = []; // every tint is to be set again
  }

  /** The token at an index: what it shows, its label and its id come from the table of distinct tokens. */
  token(index) {
    const { kinds, kind, flags, probability, rank, entropy } = this.data;
    const at = kind[index];
    return {
      shown: kinds.shown[at], label: kinds.label[at], id: kinds.id[at], flag: flags[index],
      probability: probability[index], rank: rank[index], entropy: entropy[index],
    };
  }

  showTokens() {
    const { kinds, kind, flags, probability } = this.data;
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
    this.parts.strip.append(added);
    for (const span of this.spans.splice(kind.length)) span.remove();
    this.dressed.length = kind.length;
    this.levels.length = kind.length;
    this.written = [...flags].flatMap((flag, index) => (flag === "p" ? [] : [index]));
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
    if (this.shownSelection === Number(span.dataset.index)) span.classList.add("selected");
  }

  weight(index) {
    const { weights, weights_start: start } = this.data;
    return weights?.[index - start] ?? null;
  }

  showAttention() {
    const { weights, query } = this.data;
    this.largest = weights?.length ? Math.max(...weights) : 0;
    this.spans.forEach((span, index) => {
      // Tenths of the largest weight, half a pixel each: most tokens keep their level from step to step.
      const level = this.largest ? Math.round((10 * (this.weight(index) ?? 0)) / this.largest) : 0;
      if (level === (this.levels[index] ?? 0)) return;
      this.levels[index] = level;
      // Not through a property of our own: those are inherited, which costs half as much again.
      property(span, "box-shadow", level ? `0 ${level / 2}px 0 var(--attention)` : "");
    });
    if (this.query !== query) this.spans[this.query]?.classList.remove("query");
    this.query = query;
    this.spans[query]?.classList.add("query");
  }

  makeFocusable(index) {
    const before = this.spans[this.focusable];
    if (before && this.focusable !== index) before.tabIndex = -1;
    this.focusable = index;
    if (this.spans[index]) this.spans[index].tabIndex = 0;
  }

  showSelection() {
    const selected = this.wanted?.index ?? this.data.selected;
    if (this.shownSelection !== selected) {
      const before = this.spans[this.shownSelection];
      before?.classList.remove("selected");
      before?.setAttribute("aria-selected", "false");
      this.shownSelection = selected;
      if (!this.data.live) this.reveal(selected);
    }
    this.selected = selected;
    this.spans[selected]?.classList.add("selected");
    this.spans[selected]?.setAttribute("aria-selected", "true");
    // A focused token keeps the tab stop: the newest token must not take it away while somebody reads with the keys.
    const focused = this.spans[this.focusable]?.matches(":focus");
    if (!focused) this.makeFocusable(Math.min(selected, this.spans.length - 1));
    this.showTimeline();
    put(this.parts.details, this.describe(selected).join(" · "));
  }

  showTimeline() {
    const { timeline, previous, next, place } = this.parts;
    const count = this.written.length;
    const at = this.written.indexOf(this.selected);
    timeline.max = Math.max(count, 1);
    timeline.value = at < 0 ? count : at + 1;
    timeline.disabled = count < 1;
    previous.disabled = count < 1 || at === 0;
    next.disabled = count < 1 || at < 0 || at === count - 1;
    put(place, count ? (at < 0 ? `after ${count}` : `${at + 1} of ${count}`) : "–");
    const label = at < 0 ? "next token" : this.token(this.selected).label;
    timeline.setAttribute("aria-valuetext", at < 0 ? label : `token ${at + 1} of ${count}, ${label}`);
  }

  describe(index) {
    if (index >= this.data.kind.length || index < 0) return ["the next token, not written yet"];
    const { label, id, flag, probability, rank, entropy } = this.token(index);
    const origin = { p: ", from the prompt", h: ", chosen by hand", w: "" }[flag];
    const lines = [`token ${index} “${label}”, id ${id}${origin}`];
    if (probability != null) lines.push(`probability ${percent(probability)}${rank == null ? "" : `, rank ${rank}`}`);
    if (entropy != null) lines.push(`entropy ${entropy.toFixed(2)} nats = ${(entropy / Math.LN2).toFixed(2)} bits`);
    const weight = this.weight(index);
    if (weight != null) lines.push(`attention from token ${this.data.query}: ${percent(weight)}`);
    return lines;
  }

  showPicture() {
    const { query, weights, weights_start: start, where } = this.data;
    const { looker, largest, columns } = this.parts;
    const looks = weights?.length > 0 && query != null && query < this.data.kind.length;
    // Keys end where the query stands, or, in cross-attention, where the source ends.
    const last = looks ? start + weights.length - 1 : this.data.kind.length - 1;
    // From right to left: the columns that find no room are the oldest, and wrap out of sight.
    this.columns.forEach(({ column, bar, label }, back) => {
      const index = last - back;
      column.hidden = index < 0;
      if (column.hidden) return;
      column.dataset.index = index;
      column.classList.toggle("query", looks && index === query);
      property(bar, "--weight", this.largest ? ((this.weight(index) ?? 0) / this.largest).toFixed(3) : "0");
      put(label, this.token(index).label);
    });
    put(looker, looks ? `Where token ${query} “${this.token(query).label}” looked` : "Attention");
    const top = looks ? start + weights.indexOf(this.largest) : null;
    const summary = looks ? `most at token ${top} “${this.token(top).label}”, ${percent(this.largest)}` : "nothing to show";
    put(largest, `${where}: ${summary}`);
    columns.setAttribute("aria-label", `Attention weights as bars, ${summary}`);
  }

  showCandidates() {
    const { candidates, live } = this.data;
    put(this.parts.title, candidates.title);
    this.rows.forEach(({ button, label, model, sampled, value, tick }, row) => {
      const there = row < candidates.id.length;
      const chosen = candidates.chosen === row;
      button.style.visibility = there ? "" : "hidden"; // a missing row keeps its place
      button.disabled = live || !there;
      if (!there) return;
      const [p, s] = [candidates.probability[row], candidates.sampling[row]];
      put(label, candidates.label[row]);
      put(value, percent(p));
      put(tick, chosen ? "✓" : "");
      property(model, "--share", String(p));
      property(sampled, "--share", String(s));
      button.classList.toggle("chosen", chosen);
      button.classList.toggle("cut", s === 0);
      const words = `${candidates.label[row]}, id ${candidates.id[row]}: the model ${percent(p)}, `
        + (s === 0 ? "cut off by the sampling" : `as sampled ${percent(s)}`) + (chosen ? ", written" : "");
      button.setAttribute("aria-label", words);
      button.title = live || chosen ? words : `${words}. Write this instead and go on from here.`;
    });
  }

  showStatus() {
    const { status, strip } = this.parts;
    const { live } = this.data;
    // Eight announcements a second would drown a screen reader: it hears the first and the last.
    status.setAttribute("aria-live", live && this.wasLive ? "off" : "polite");
    this.wasLive = live;
    put(status, this.data.status);
    strip.dataset.live = live;
    if (this.tipFor && !this.tipFor.isConnected) this.hideTip();
  }

  /** Scroll the box, never the page, until a token can be seen. */
  reveal(index) {
    const span = this.spans[index];
    if (!span) return;
    const { strip } = this.parts;
    const box = strip.getBoundingClientRect();
    const place = span.getBoundingClientRect();
    if (place.top < box.top + 8) strip.scrollTop -= box.top + 8 - place.top;
    else if (place.bottom > box.bottom - 8) strip.scrollTop += place.bottom - box.bottom + 8;
  }

  tokenTip(target, index) {
    if (!target || index === null || index >= this.data.kind.length) return this.hideTip();
    const { tip } = this.parts;
    put(tip, this.describe(index).join("\n"));
    // The top layer: neither the box's scrolling nor an ancestor's transform clips or moves the tip.
    if (!tip.matches(":popover-open")) tip.showPopover?.();
    this.tipFor = target;
    const place = target.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(Math.max(place.left, 8), document.documentElement.clientWidth - width - 8);
    const above = place.top - height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : place.bottom + 8}px`;
  }

  hideTip() {
    this.tipFor = null;
    if (this.parts.tip.matches(":popover-open")) this.parts.tip.hidePopover();
  }
}

// The view is mounted once; live_text_feed.js puts the data into the box of the same name, before or after this runs.
// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  const boxes = (globalThis.headsupLiveText ??= new Map());
  if (!boxes.has(data.name)) boxes.set(data.name, {});
  const box = boxes.get(data.name);
  let view = views.get(parentElement);
  if (!view?.root.isConnected) views.set(parentElement, (view = new View(parentElement)));
  view.send = (event, value) => box.send(event, value);
  box.deliver = () => view.update(box.data);
  if (box.data) box.deliver();
}

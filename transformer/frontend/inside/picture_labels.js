// Draws the names in the picture as buttons above the canvas: blocks, sublayers, tensors and parameters in the order of
// the pass, the prompt below, the predicted tokens above, and the logit lens in the margin.

import { attribute, focusedIn, node, put, untranslated } from "../dom.js";
import { cut, fitColumns, labelFont, scaled } from "../axis_labels.js";
import { isCausal } from "../attention_config.js";
import { percent } from "../number_format.js";
import { columnAt, streamAt } from "./layout.js";
import { layerName, plainName } from "./plain_names.js";

const LONGEST = 12; // characters of a token
const USUAL = 12; // pixels of a token's type
// Pixels of usual type:
const NAMED = 60; // height of a closed block from which its sublayers are named, too
const TITLE = 22; // a block's name
const SUB = 15; // a sublayer's name
const LENS = 70; // width of the margin below which the logit lens has only a word or a percentage
const LETTER = 7.4; // a letter of a token in the margin
const NAME = 18; // height of a name
const TITLES = 24; // above the columns, for the title of the predicted tokens
const KINDS = ["row", "part", "header", "group"]; // what is named beside the picture
const DATA = /^(?:token|next|answer|lens$|name row)/; // classes of tokens and of tensors' names
const ANSWER = { size: 28, high: 40 }; // the prediction at the selected token, above all others

export class PictureLabels {
  /** @type {CanvasRenderingContext2D} */ ruler;

  /** events: open(what), token(stack, token), hover(id or null). */
  constructor(parent, events) {
    this.layer = node("div", "names", parent);
    this.events = events;
    this.made = new Map();
    this.layer.addEventListener("click", (event) => this.onClick(event));
    for (const [kind, isOn] of Object.entries({ pointerover: true, pointerout: false, focusin: true, focusout: false })) {
      this.layer.addEventListener(kind, ({ target }) => {
        /** @type {HTMLElement | null} */
        const named = /** @type {Element} */ (target).closest("[data-id]");
        events.hover(isOn ? (named?.dataset.id ?? null) : null);
      });
    }
    this.layer.addEventListener("focusin", (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.dataset.open !== undefined) this.stopAt(target);
    });
  }

  holds(element) {
    return this.layer.contains(element);
  }

  onClick(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.open !== undefined) this.events.open(button.dataset.open);
    else if (button.dataset.token !== undefined) this.events.token(button.dataset.stack, Number(button.dataset.token));
  }

  /** Pixels that labels need below and above the columns. */
  room(pass, stacks, pitches) {
    const below = stacks.map((stack, at) => this.fit(pass.labels[stack.tokens], pitches[at]).height);
    const writing = stacks.findIndex(({ writes }) => writes);
    const above = Math.max(this.fit(this.nextLabels(pass), pitches[writing]).height + 10, scaled(TITLES));
    return { below: Math.max(...below) + scaled(12), above: above + scaled(ANSWER.high) };
  }

  fit(labels, pitch) {
    return fitColumns(labels.map((label) => this.widthOf(cut(label, LONGEST))), pitch);
  }

  widthOf(text) {
    this.ruler ??= document.createElement("canvas").getContext("2d");
    this.ruler.font = labelFont(USUAL); // one size for all: setting a canvas's font is slow
    return this.ruler.measureText(text).width;
  }

  nextLabels(pass) {
    if (this.nextOf !== pass) {
      const { data, shape } = pass.outline.next;
      this.next = Array.from({ length: shape[0] }, (_, token) => pass.vocabulary[data[token * shape[1]]] ?? "?");
      this.nextOf = pass;
    }
    return this.next;
  }

  show(pass, layout, scene) {
    this.seen = [];
    const tokens = this.row("tokens", "tokens", layout.height - layout.stacks[0].bottom - 4, layout); // all stacks' tokens, on one background
    for (const stack of layout.stacks) {
      this.showTokens(pass, stack, tokens, scene);
      for (const group of stack.groups) this.showGroup(stack, group, scene);
      const above = this.row(`above ${stack.prefix}`, "nexts", stack.top - 6, layout);
      this.title(stack, above, !stack.writes ? "" : isCausal(pass.config) ? "predicted next token" : "predicted token", stack.title);
      if (stack.writes) {
        this.showNext(pass, stack, above, layout, scene);
        this.showLens(pass, stack, layout, scene);
      }
    }
    this.arrange();
  }

  // A node lives as long as what it names, so it keeps the focus.
  arrange() {
    const wanted = new Set(this.seen.map(({ key }) => key));
    for (const [key, element] of this.made) {
      if (wanted.has(key)) continue;
      element.remove();
      this.made.delete(key);
    }
    const focused = focusedIn(this.layer);
    const counts = new Map();
    for (const { element, parent } of this.seen) {
      const at = counts.get(parent) ?? 0;
      if (parent.children[at] !== element) parent.insertBefore(element, parent.children[at] ?? null);
      counts.set(parent, at + 1);
    }
    if (focused && this.layer.contains(focused)) focused.focus({ preventScroll: true });
    const all = this.openers;
    this.stopAt(all.find((opener) => opener === focused) ?? all.find((opener) => opener.getAttribute("aria-pressed") === "true") ?? all[0]);
  }

  get openers() {
    /** @type {NodeListOf<HTMLElement>} */
    const openers = this.layer.querySelectorAll("[data-open]");
    return [...openers];
  }

  // All names are one tab stop; arrow keys move between them.
  stopAt(stop) {
    for (const opener of this.openers) attribute(opener, "tabindex", opener === stop ? "0" : "-1");
  }

  element(key, tag, className, text, box, parent = this.layer) {
    let element = this.made.get(key);
    if (!element) {
      element = node(tag, className);
      element.translate = !DATA.test(className);
      if (tag === "button") element.type = "button";
      this.made.set(key, element);
      element.dataset.new = "";
    } else delete element.dataset.new;
    if (element.className !== className) element.className = className;
    if (text !== null) put(element, text);
    for (const side of ["left", "top", "width", "height"]) {
      const value = box[side] === undefined ? "" : `${box[side].toFixed(1)}px`;
      if (element.style[side] !== value) element.style[side] = value;
    }
    this.seen.push({ key, element, parent });
    return element;
  }

  // Labels below and above tokens move as one element: moving hundreds by themselves is slow.
  row(key, className, height, layout) {
    return this.element(key, "div", `row-of ${className}`, null, { width: layout.width, height });
  }

  // The title of a row of tokens, to its left, and the stack's name above it.
  title(stack, row, title, name = "") {
    const made = this.element(`title ${row.className} ${stack.prefix}`, "div", "row-title", null, { left: stack.left - stack.gutter, width: stack.gutter - 8 }, row);
    if (!made.childElementCount) made.replaceChildren(node("b", ""), node("span", ""));
    put(made.firstChild, name);
    put(made.lastChild, title);
  }

  /** The label of the first of these rows, parts or groups that has one. @param {(string | undefined)[]} ids @returns {HTMLElement | undefined} */
  labelOf(ids) {
    return ids.flatMap((id) => KINDS.map((kind) => this.made.get(`${kind} ${id}`))).find(Boolean);
  }

  showGroup(stack, group, scene) {
    const left = stack.left - stack.gutter;
    const width = stack.gutter - 8;
    const { name: openName, part: openPart } = scene.focus ?? {};
    const isBlock = group.kind === "block";
    if (isBlock && !group.isOpen) this.showClosed(stack, group, left, width);
    for (const part of group.parts) {
      if (part.header) this.showHeader(stack, group, part, openPart?.id === part.id, scene);
      if (group.isOpen && part.strip) this.button(`part ${part.id}`, "name", part.title, part.id, part.id, { left, width, ...around((part.top + part.bottom) / 2) });
      for (const row of part.rows) {
        const text = group.isOpen ? plainName(row.name, scene.config) : this.endTitle(group, row.name);
        const made = this.button(`row ${row.name}`, group.isOpen ? "name row" : "name", text, row.name, group.isOpen ? row.name : group.id,
          { left, width, ...around((row.top + row.bottom) / 2) });
        attribute(made, "aria-pressed", String(row.name === openName));
        made.title = row.name;
      }
    }
  }

  endTitle(group, name) {
    if (name.endsWith("hook_pos_embed")) return "+ position";
    if (name.endsWith("hook_segment_embed")) return "+ segment";
    if (name.endsWith("ln_embed.hook_out")) return "norm";
    return group.title;
  }

  showClosed(stack, group, left, width) {
    const high = group.bottom - group.top;
    const isNamed = high >= scaled(Math.max(NAMED, TITLE + SUB * group.parts.length));
    const box = around(isNamed ? group.top + 4 + scaled(NAME / 2) : (group.top + group.bottom) / 2, high);
    const made = this.button(`group ${group.id}`, "name block", group.title, group.target, group.id, { left, width, ...box });
    attribute(made, "aria-label", layerName(stack, group));
    if (!isNamed) return;
    const lines = linesOf(group);
    group.parts.forEach((part, at) => this.button(`part ${part.id}`, "name sub", part.title, part.id, part.id, { left, top: lines[at], width, height: scaled(16) }));
  }

  showHeader(stack, group, part, isOpen, { config, focus }) {
    const left = stack.left - stack.gutter;
    const header = this.element(`header ${part.id}`, "div", "header", null, { left, top: part.header.top, width: stack.end - left, height: part.header.bottom - part.header.top });
    attribute(header, "data-id", part.id);
    const openName = focus?.name;
    const key = [part.id, isOpen, openName].join();
    if (header.dataset.shown === key) return;
    header.dataset.shown = key;
    header.replaceChildren();
    const title = group.kind === "block" ? `${group.title} · ${part.title}` : part.title;
    const button = node("button", "title", header);
    button.dataset.open = part.target;
    put(button, title);
    for (const name of part.parameters) {
      const chip = untranslated(node("button", "chip", header));
      chip.dataset.open = name;
      chip.title = name;
      attribute(chip, "aria-pressed", String(name === openName));
      put(chip, plainName(name, config));
    }
  }

  button(key, className, text, open, id, box) {
    const made = this.element(key, "button", className, text, box);
    attribute(made, "data-open", open);
    attribute(made, "data-id", id);
    return made;
  }

  showTokens(pass, stack, row, scene) {
    const labels = pass.labels[stack.tokens];
    const { turned, step } = this.fit(labels, stack.pitch);
    this.title(stack, row, tokensTitle(pass, stack));
    const selected = stack.writes ? scene.token : scene.source;
    for (let token = 0; token < stack.count; token++) {
      const { start } = columnAt(stack, token);
      const isShown = token === selected || (token % step === 0 && Math.abs(token - (selected ?? -99)) >= step);
      const made = this.element(`token ${stack.prefix} ${token}`, "button", turned ? "token turned" : "token", null,
        { left: start, width: stack.pitch, height: turned ? undefined : scaled(20) }, row);
      put(made.firstChild ?? node("span", "", made), isShown ? cut(labels[token], LONGEST) : ""); // Safari doesn't rotate a button
      attribute(made, "data-token", String(token));
      attribute(made, "data-stack", stack.prefix);
      attribute(made, "aria-label", `Token ${token}: ${labels[token]}`);
      attribute(made, "aria-pressed", String(token === selected));
      made.tabIndex = token === (selected ?? stack.count - 1) ? 0 : -1;
    }
  }

  showNext(pass, stack, row, layout, scene) {
    const labels = this.nextLabels(pass);
    const { turned, step } = this.fit(labels, stack.pitch);
    const { data, shape } = pass.outline["next.probability"];
    const title = (token) => `Predicted ${isCausal(pass.config) ? "after" : "at"} token ${token}: “${labels[token]}”, ${percent(data[token * shape[1]])}`;
    for (let token = 0; token < stack.count; token++) {
      if (token === scene.token || token % step || Math.abs(token - scene.token) < step) continue;
      const made = this.element(`next ${token}`, "div", turned ? "next turned" : "next", cut(labels[token], LONGEST), { left: columnAt(stack, token).start, width: stack.pitch, height: stack.top - 6 }, row);
      made.title = title(token);
    }
    this.showAnswer(stack, layout, scene.token, [cut(labels[scene.token], LONGEST), percent(data[scene.token * shape[1]])], title(scene.token));
  }

  // The prediction at the selected token, above its column unless the picture's edges are in the way.
  showAnswer(stack, layout, token, [label, share], title) {
    const { stream } = columnAt(stack, token);
    const width = Math.min(layout.width, (ANSWER.size / USUAL) * this.widthOf(`${label} ${share}`));
    const left = Math.max(0, Math.min(stream - width / 2, layout.width - width));
    const high = scaled(ANSWER.high);
    const made = this.element("answer", "div", "answer", null, { left, width, height: high });
    if (made.childElementCount !== 2) made.replaceChildren(node("b", ""), node("span", ""));
    put(made.firstChild, label);
    put(made.lastChild, share);
    made.title = title;
    this.element("answer stem", "div", "answer-stem", "", { left: stream - 1, top: high, height: Math.max(0, stack.top - high - 2) });
  }

  // The logit lens: what the selected token's stream would predict if the model ended there.
  showLens(pass, stack, layout, scene) {
    const { data, shape } = pass.outline.lens;
    const shares = pass.outline["lens.probability"].data;
    const left = stack.right + 10;
    const width = layout.width - left;
    if (width < scaled(40)) return;
    const title = this.element("lens title", "div", "lens-title", "logit lens", { left, top: stack.top - scaled(22), width, height: scaled(16) });
    title.title = "The logit lens: what the model would predict if it ended after each layer";
    let last = Infinity;
    for (let depth = 0; depth < shape[0]; depth++) {
      const y = streamAt(stack, depth);
      if (last - y < scaled(13)) continue;
      last = y;
      const at = depth * shape[1] + scene.token;
      const made = this.element(`lens ${depth}`, "div", "lens", null, { left, width, ...around(y) });
      if (made.childElementCount !== 2) made.replaceChildren(node("b", ""), node("small", ""));
      const isThere = pass.hasLens(scene.token);
      const label = isThere ? (pass.vocabulary[data[at]] ?? "?") : "…";
      const most = Math.max(1, Math.floor((width - scaled(42)) / scaled(LETTER)));
      const isAlone = width < scaled(LENS) && label.length > most; // the word says more than its percentage
      put(made.firstChild, cut(label, isAlone ? Math.floor(width / scaled(LETTER)) : most));
      put(made.lastChild, isThere && !isAlone ? percent(shares[at]) : "");
      made.style.setProperty("--share", (shares[at] || 0).toFixed(3));
      made.title = `Logit lens ${depth ? `after layer ${depth - 1}` : "before the first layer"}: “${label}”${isThere ? `, ${percent(shares[at])}` : ""}`;
    }
  }

  /** Focus the selected token of a stack. */
  focusToken(prefix) {
    /** @type {HTMLElement | null} */
    const token = this.layer.querySelector(`[data-stack="${prefix}"][tabindex="0"]`);
    token?.focus({ preventScroll: true });
  }

  /** Focus the next name up (1) or down (−1), in the order of the pass. */
  step(upwards) {
    const all = this.openers;
    const at = all.indexOf(focusedIn(this.layer));
    const next = at < 0 ? (upwards > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + upwards, 0), all.length - 1);
    all[next]?.focus();
  }
}

/** The title of a stack's row of tokens. */
function tokensTitle({ metadata, offset }, { prefix, count }) {
  if (prefix) return prefix === "encoder." ? "source" : "text so far";
  return offset + count > (metadata.prompt ?? Infinity) ? "prompt and text" : "prompt";
}

/** Top and height of a name with this middle; most: its largest height. */
function around(middle, most = Infinity) {
  const height = Math.min(scaled(NAME), most);
  return { top: middle - height / 2, height };
}

/** Tops of the names of a closed block's sublayers: beside their strips, without overlapping. */
function linesOf(group) {
  const beside = group.parts.map(({ kind, strip }) => (strip.top + strip.bottom) / 2 - scaled(kind === "mlp" ? 11 : 8));
  const lines = [];
  let free = group.top + scaled(TITLE);
  for (const at of beside.map((_, index) => index).sort((one, other) => beside[one] - beside[other])) {
    lines[at] = Math.max(beside[at], free);
    free = lines[at] + scaled(SUB);
  }
  return lines;
}

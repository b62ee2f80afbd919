// Terms of the glossary in the page, underlined where they stand. Nothing of the page is touched: React and the instruments
// own their nodes, so the underlines are the browser's highlights (CSS Custom Highlight API), laid over text from outside.
//
// A page that writes changes its text many times a second. What has changed is looked at when the page has rested, block by
// block, and ranges are static: a live range costs something at every change of the document.

import { termsIn } from "./terms.js";

const NAME = "headsup-term";
const REST_MS = 300; // without a change, after which what has changed is looked at
const LATEST_MS = 1500; // where changes never rest
const SLICE_MS = 6; // of looking, before the browser has its turn
const BLOCKS = "p, li, h2, h3, h4, h5, label, figcaption, legend, summary, button, dt, dd, header, footer, div, section";
/** Text that is a visitor's, a model's, or a number; what is a picture; what leads elsewhere; the guide's own. */
const FOREIGN = "[role=listbox], [role=tooltip], .strip, .versions p, table, svg, canvas, textarea, input, select, option, code, pre, " +
  "script, style, a, .katex, [data-testid=stCode], [data-testid=stIconMaterial], [class*=st-key-example_], [data-no-terms], h1";
const HOST = "[data-testid=stBidiComponentIsolated]"; // of a component's shadow tree
const PLACES = "[data-testid=stMain], [data-testid=stPopoverBody]";
const STYLE = `::highlight(${NAME}) { text-decoration: underline dotted 1px; text-underline-offset: 0.2em; }`;

export class Marks {
  /** matcher: as `matcherOf` gives it. within: a style sheet that every component's shadow tree is given, too. */
  constructor(matcher, within) {
    this.matcher = matcher;
    this.within = within;
    this.blocks = new Map(); // an element with text of its own → its marks, [{ term, node, range }]
    this.waiting = new Set(); // what has changed and is yet to be looked at
    this.roots = new WeakSet();
    this.highlight = globalThis.CSS?.highlights && new Highlight();
    if (this.highlight) CSS.highlights.set(NAME, this.highlight);
    this.underline = new CSSStyleSheet();
    this.underline.replaceSync(STYLE);
    this.observer = new MutationObserver((records) => this.onMutations(records));
    this.watch(document);
    for (const place of document.querySelectorAll(PLACES)) this.waiting.add(place);
    this.schedule();
  }

  watch(root) {
    if (this.roots.has(root)) return;
    this.roots.add(root);
    this.observer.observe(root === document ? document.body : root, { childList: true, characterData: true, subtree: true });
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, this.underline, ...(root === document ? [] : [this.within])];
  }

  onMutations(records) {
    for (const { target, addedNodes } of records) {
      // Its style is in force before it is seen.
      if (target.getRootNode() === document) for (const each of addedNodes) {
        const host = each.matches?.(HOST) ? each : each.querySelector?.(HOST);
        if (host?.shadowRoot) this.watch(host.shadowRoot);
      }
      const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement ?? target;
      if (!element.closest?.(FOREIGN)) this.waiting.add(element);
    }
    if (this.waiting.size) this.schedule();
  }

  schedule() {
    const now = performance.now();
    this.due ??= now + LATEST_MS;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.due = undefined;
      (globalThis.requestIdleCallback ?? setTimeout)(() => this.look());
    }, Math.min(REST_MS, Math.max(0, this.due - now)));
  }

  look() {
    const until = performance.now() + SLICE_MS;
    for (const element of this.waiting) {
      this.waiting.delete(element);
      if (element.isConnected) this.lookInto(element);
      if (performance.now() > until) break;
    }
    if (this.waiting.size) this.schedule();
    for (const block of this.blocks.keys()) if (!block.isConnected) this.forget(block);
  }

  lookInto(element) {
    if (element instanceof ShadowRoot) this.watch(element);
    else if (!isOfPage(element) || element.closest(FOREIGN)) {
      // The page as a whole has changed: what it has of ours is within it.
      for (const place of element.querySelectorAll?.(PLACES) ?? []) this.lookInto(place);
      return;
    }
    const touched = new Set();
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
      if (!(node instanceof Element)) return NodeFilter.FILTER_ACCEPT;
      return node.matches(FOREIGN) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
    });
    if (element.closest?.(BLOCKS)) touched.add(element.closest(BLOCKS));
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node instanceof Text) {
        const block = node.parentElement?.closest(BLOCKS);
        if (block && node.data.trim()) touched.add(block);
      } else if (node instanceof Element && node.shadowRoot) this.lookInto(node.shadowRoot);
    }
    for (const block of touched) this.mark(block);
  }

  // Each term where a block says it first.
  mark(block) {
    this.forget(block);
    const found = [];
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
      if (!(node instanceof Element)) return NodeFilter.FILTER_ACCEPT;
      return node.matches(FOREIGN) || node.matches(BLOCKS) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    });
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const { term, start, end } of termsIn(node.nodeValue, this.matcher)) {
        if (found.some((mark) => mark.term === term)) continue;
        found.push({ term, range: new StaticRange({ startContainer: node, startOffset: start, endContainer: node, endOffset: end }) });
      }
    }
    if (!found.length) return;
    this.blocks.set(block, found);
    for (const { range } of found) this.highlight?.add(range);
  }

  forget(block) {
    for (const { range } of this.blocks.get(block) ?? []) this.highlight?.delete(range);
    this.blocks.delete(block);
  }

  /** What is marked in the block that an element belongs to. */
  of(element) {
    return this.blocks.get(element?.closest?.(BLOCKS)) ?? [];
  }

  /** The mark at a point of the window, in pixels, and its rectangle there, { term, rect }; undefined if there is none. */
  at(element, x, y) {
    for (const { term, range } of this.of(element)) {
      const rect = rectsOf(range).find(({ left, right, top, bottom }) => x >= left && x <= right && y >= top && y <= bottom);
      if (rect) return { term, rect };
    }
    return undefined;
  }

  /** The terms that can be seen on the page now, each once, from top to bottom. */
  get shown() {
    const places = [...this.blocks].filter(([block]) => block.isConnected && block.checkVisibility({ visibilityProperty: true }))
      .map(([block, marks]) => [block.getBoundingClientRect().top, marks]);
    places.sort(([one], [other]) => one - other);
    return [...new Set(places.flatMap(([, marks]) => marks.map(({ term }) => term)))];
  }
}

/** Where a static range is in the window; nowhere if its text has changed since. */
function rectsOf({ startContainer, startOffset, endOffset }) {
  if (!startContainer.isConnected || endOffset > startContainer.length) return [];
  const range = document.createRange();
  range.setStart(startContainer, startOffset);
  range.setEnd(startContainer, endOffset);
  return [...range.getClientRects()];
}

/** Whether an element is in the page; one in a component is where its component is. */
function isOfPage(element) {
  for (let at = element; at; at = at.getRootNode().host) if (at.closest(PLACES)) return true;
  return false;
}

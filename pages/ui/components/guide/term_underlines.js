// Underlines the glossary's terms in the page, each where running text uses it first. The page's nodes stay untouched,
// as React and the instruments own them: the underlines are the browser's highlights (CSS Custom Highlight API), laid
// over text from outside.
//
// A page that writes changes its text many times a second. A block that changes loses its underlines at once, and is looked at
// again when the page has rested. Ranges are static: a live range costs something at every change of the document.

import { isVisible } from "../../../../transformer/frontend/dom.js";
import { termsIn } from "./terms.js";

const NAME = "headsup-term";
const REST_MS = 300; // without a change, after which what has changed is looked at
const LATEST_MS = 1500; // where changes never rest
const SLICE_MS = 6; // of looking, before the browser has its turn
const RUNNING = "p, li, dd, figcaption"; // of these, what has a sentence is read; a term elsewhere is listed, and not underlined
const BLOCKS = `${RUNNING}, h2, h3, h4, h5, label, legend, summary, button, dt, header, footer, div, section`;
const SENTENCE = /\p{L}\p{L}[.?](\s|$)/u;
const FIGURE = "[data-testid=stMetric]"; // a number, and what it is a number of
/** What is pressed, or names what is; what lies over the page. */
const CONTROLS = "button, label, legend, summary, h1, h2, h3, h4, h5, h6, [role=radio], [role=tab], [role=checkbox], " +
  "[data-testid=stWidgetLabel], [data-testid=stMetric], [data-testid=stPopoverBody], .shell-menu";
/** Text that is a visitor's, a model's, or a number; what is a picture; what leads elsewhere; the guide's own. */
const FOREIGN = "[role=listbox], [role=tooltip], .strip, .text-comparison p, table, svg, canvas, textarea, input, select, option, code, pre, " +
  "script, style, a, .katex, [data-testid=stCode], [data-testid=stIconMaterial], [class*=st-key-example_], [data-no-terms], h1";
const HOST = "[data-testid=stBidiComponentIsolated]"; // of a component's shadow tree
const AREAS = "[data-testid=stMain], [data-testid=stPopoverBody]";
const STYLE = `::highlight(${NAME}) { text-decoration-line: underline; text-decoration-style: dotted; text-decoration-thickness: 1px; text-underline-offset: 0.2em; }`;

export class TermUnderlines {
  /** matcher: as `matcherOf` gives it. within: a style sheet that every component's shadow tree is given, too. */
  constructor(matcher, within) {
    this.matcher = matcher;
    this.within = within;
    this.blocks = new Map(); // an element with text of its own → its terms, [{ term, range }]
    this.first = new Map(); // a term → where it is underlined, { term, range, block }
    this.waiting = new Set(); // what has changed and is yet to be looked at
    this.roots = new WeakSet();
    this.highlight = globalThis.CSS?.highlights && new Highlight();
    if (this.highlight) CSS.highlights.set(NAME, this.highlight);
    this.underline = new CSSStyleSheet();
    this.underline.replaceSync(STYLE);
    this.observer = new MutationObserver((records) => this.onMutations(records));
    this.watch(document);
    for (const element of document.querySelectorAll(AREAS)) this.waiting.add(element);
    this.schedule();
  }

  watch(root) {
    if (this.roots.has(root)) return;
    this.roots.add(root);
    this.observer.observe(root === document ? document.body : root, { childList: true, characterData: true, subtree: true });
    root.addEventListener("toggle", () => this.schedule(), { capture: true }); // what opens may say a term first
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, this.underline, ...(root === document ? [] : [this.within])];
  }

  onMutations(records) {
    for (const { target, addedNodes } of records) {
      // Its style is in force before it is seen.
      if (target.getRootNode() === document) for (const added of addedNodes) {
        const host = added.matches?.(HOST) ? added : added.querySelector?.(HOST);
        if (host?.shadowRoot) this.watch(host.shadowRoot);
      }
      const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement ?? target;
      this.forget(element.closest?.(BLOCKS)); // before it is painted: no underline outlasts its word
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

  look(until = performance.now() + SLICE_MS) {
    for (const element of this.waiting) {
      this.waiting.delete(element);
      if (element.isConnected) this.lookInto(element);
      if (performance.now() > until) break;
    }
    if (this.waiting.size) return this.schedule();
    for (const block of this.blocks.keys()) if (!block.isConnected) this.forget(block);
    this.underlineFirst();
  }

  lookInto(element) {
    if (element instanceof ShadowRoot) this.watch(element);
    else if (!isOfPage(element) || element.closest(FOREIGN)) {
      // The page as a whole has changed: what it has of ours is within it.
      for (const child of element.querySelectorAll?.(AREAS) ?? []) this.lookInto(child);
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

  // Each term that a block says.
  mark(block) {
    this.forget(block);
    const marks = [];
    const isRunning = block.matches(RUNNING) && !block.closest(CONTROLS) && SENTENCE.test(block.textContent);
    const whole = isRunning || block.closest(FIGURE) ? "" : block.textContent;
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
      if (!(node instanceof Element)) return NodeFilter.FILTER_ACCEPT;
      return node.matches(FOREIGN) || node.matches(BLOCKS) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    });
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const { term, start, end } of termsIn(node.nodeValue, this.matcher, whole)) {
        if (marks.some((mark) => mark.term === term)) continue;
        const range = new StaticRange({ startContainer: node, startOffset: start, endContainer: node, endOffset: end });
        marks.push({ term, range, block, isRunning });
      }
    }
    if (marks.length) this.blocks.set(block, marks);
  }

  forget(block) {
    for (const { term, range } of this.blocks.get(block) ?? []) {
      if (this.first.get(term)?.range !== range) continue;
      this.highlight?.delete(range);
      this.first.delete(term);
    }
    this.blocks.delete(block);
  }

  // Each term where running text says it first, of what can be seen.
  underlineFirst() {
    this.first.clear();
    for (const mark of this.seen) if (mark.isRunning && !this.first.has(mark.term)) this.first.set(mark.term, mark);
    if (!this.highlight) return;
    const ranges = new Set([...this.first.values()].map(({ range }) => range));
    for (const range of this.highlight) if (!ranges.has(range)) this.highlight.delete(range);
    for (const range of ranges) this.highlight.add(range);
  }

  /** The terms that the block says which an element belongs to. */
  of(element) {
    return this.blocks.get(element?.closest?.(BLOCKS)) ?? [];
  }

  /** The underlined term at a point of the window, in pixels, and its rectangle there, { term, rect }; undefined if there is none. */
  at(element, x, y) {
    for (const { term, range } of this.of(element)) {
      if (this.first.get(term)?.range !== range) continue;
      const rect = rectsOf(range).find(({ left, right, top, bottom }) => x >= left && x <= right && y >= top && y <= bottom);
      if (rect) return { term, rect };
    }
    return undefined;
  }

  /** The marks that can be seen on the page now, from top to bottom. */
  get seen() {
    const blocks = [...this.blocks].filter(([block]) => block.isConnected && isVisible(block))
      .map(([block, marks]) => ({ ...positionOf(block), marks }));
    blocks.sort((one, other) => one.top - other.top || one.left - other.left);
    return blocks.flatMap(({ marks }) => marks);
  }

  /** Their terms, each once, of the page as it is at this moment. */
  get shown() {
    this.look(Infinity);
    return [...new Set(this.seen.map(({ term }) => term))];
  }
}

function positionOf(block) {
  const { top, left } = block.getBoundingClientRect();
  return { top, left };
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
  for (let at = element; at; at = at.getRootNode().host) if (at.closest(AREAS)) return true;
  return false;
}

// Draws the attention patterns of all heads as small heatmaps to choose from: a table of layers and heads, the first
// layer at the bottom, or one row of cards in a given order. One tab stop: keys go from head to head. Nodes are kept
// from drawing to drawing.
import { arrange, attribute, node, put } from "./dom.js";
import { gradient, lookupTable, SEQUENTIAL } from "./colours.js";
import { nextCell } from "./grid_navigation.js";
import { drawOverview } from "./head_overview_picture.js";
import { pngButton } from "./save.js";

const WORDS = lookupTable(SEQUENTIAL);

export class HeadOverview {
  /** @type {number} */ queries;
  /** @type {number} */ keys;
  /** @type {Uint8Array} */ cells;

  /**
   * @param {HTMLElement} parent
   * @param {(layer: number, head: number) => void} onSelect a head was clicked, or chosen with Enter or Space; the layer as it is called
   * @param {(layer: number, head: number) => void} [onPoint] the pointer, or the keyboard's focus, has come to a head
   */
  constructor(parent, onSelect, onPoint) {
    this.onSelect = onSelect;
    this.onPoint = onPoint;
    this.cards = []; // one a head, in the order of layers and heads
    this.shown = []; // those on screen, in the order of the screen
    this.layers = [];
    this.heads = 0;
    this.order = null;
    this.selection = null;
    this.changedHeads = new Map();
    this.root = node("div", "overview", parent);
    this.grid = node("div", "grid", node("div", "scroller", this.root));
    attribute(this.grid, "role", "group");
    attribute(this.grid, "aria-label", "Attention patterns, one button a head");
    this.makeFooter(node("footer", "", this.root));
    this.listen();
  }

  makeFooter(footer) {
    this.readout = node("p", "readout", footer);
    this.readout.dataset.testid = "head-grid-readout";
    const legend = node("p", "legend", footer);
    const ramp = node("span", "ramp");
    ramp.style.background = gradient(SEQUENTIAL);
    legend.append("weight 0 ", ramp, " 1 ");
    this.ofHidden = node("span", "", legend);
    this.ofHidden.append(node("span", "hidden-key"), " hidden");
    pngButton(footer, () => "attention-patterns", () => drawOverview(this));
  }

  listen() {
    const cardOf = (event) => this.shown.find(({ button }) => button.contains(event.target)) ?? null;
    this.grid.addEventListener("click", (event) => {
      const card = cardOf(event);
      if (!card) return;
      this.makeFocusable(card);
      this.select(card.layer, card.head);
      this.onSelect(card.layer, card.head);
    });
    this.grid.addEventListener("keydown", (event) => this.onKey(event));
    for (const kind of ["pointerover", "focusin"]) this.grid.addEventListener(kind, (event) => this.readOut(cardOf(event)));
    for (const kind of ["pointerleave", "focusout"]) this.grid.addEventListener(kind, () => this.readOut(null));
  }

  /** A head's menu, by the right button or the keyboard's own key for it: it is chosen, and open() is called. */
  offerMenu(open) {
    this.grid.addEventListener("contextmenu", (event) => {
      const card = this.shown.find(({ button }) => button.contains(event.target));
      if (!card) return;
      event.preventDefault();
      card.button.click();
      open();
    });
  }

  /** Say of some heads what was changed in them: words by "layer,head". */
  tell(words) {
    this.changedHeads = words;
    for (const card of this.cards) attribute(card.button, "data-changed", String(words.has(`${card.layer},${card.head}`)));
    this.layOut();
  }

  /** Whether heads stand in a table; cards in an order, and a single layer, are one line, however it wraps. */
  get isTable() {
    return !this.order && this.layers.length > 1;
  }

  onKey(event) {
    const at = this.shown.indexOf(this.focusable);
    const columns = this.isTable ? this.heads : this.shown.length;
    const here = { row: Math.floor(at / columns), column: at % columns };
    const next = nextCell(event, here, this.shown.length / columns, columns);
    if (!next) return;
    event.preventDefault();
    this.makeFocusable(this.shown[next.row * columns + next.column]);
    this.focusable.button.focus();
  }

  makeFocusable(card) {
    this.focusable = card;
    for (const other of this.cards) other.button.tabIndex = other === card ? 0 : -1;
  }

  /**
   * Draw patterns. layers: what each is called. cells: a byte each, of layer, head, query and key: 0 to 254 for a weight
   * from 0 to 1, 255 hidden. Other layers, or another number of heads, are laid out anew; an order that was given is
   * then forgotten.
   */
  show({ layers, heads, queries, keys, cells }) {
    const isNew = layers.join() !== this.layers.join() || heads !== this.heads;
    Object.assign(this, { queries, keys, cells });
    this.ofHidden.hidden = !cells.includes(255);
    if (isNew) {
      Object.assign(this, { layers, heads, order: null });
      while (this.cards.length < layers.length * heads) this.cards.push(makeCard());
      this.cards.length = layers.length * heads;
      this.cards.forEach((card, index) => Object.assign(card, { layer: layers[Math.floor(index / heads)], head: index % heads }));
      this.layOut();
    }
    this.draw();
  }

  /** Show these heads alone, in this order: a list of { layer, head, caption }. null: the table of layers and heads. */
  arrange(order) {
    this.order = order;
    this.layOut();
  }

  layOut() {
    const { grid, heads, layers, order, isTable } = this;
    grid.className = isTable ? "grid table" : "grid row";
    const wanted = order ?? [...layers].reverse().flatMap((layer) => Array.from({ length: heads }, (_, head) => ({ layer, head })));
    this.shown = wanted.map(({ layer, head }) => this.card(layer, head)).filter(Boolean);
    grid.style.setProperty("--heads", String(isTable ? heads : this.shown.length));
    grid.style.setProperty("--layers", String(layers.length));
    const captions = new Map(order?.map(({ layer, head, caption }) => [this.card(layer, head), caption]));
    const children = isTable ? [heading("corner", "", ""), ...Array.from({ length: heads }, (_, head) => heading("head", "head", head))] : [];
    this.shown.forEach((card, index) => {
      if (isTable && index % heads === 0) children.push(heading("layer", "layer", card.layer));
      card.caption = captions.get(card) ?? "";
      const changed = this.changedHeads.has(`${card.layer},${card.head}`) ? "changed" : "";
      attribute(card.button, "aria-label", [nameOf(card), card.caption, changed].filter(Boolean).join(", "));
      put(card.name, order ? `layer ${card.layer}, head ${card.head}` : `head ${card.head}`);
      put(card.words, card.caption);
      children.push(card.button);
    });
    const focused = this.shown.find(({ button }) => button.matches(":focus"));
    arrange(grid, children);
    focused?.button.focus({ preventScroll: true }); // a node that is moved loses it
    this.showSelection();
  }

  draw() {
    const { queries, keys, cells } = this;
    this.cards.forEach(({ canvas }, index) => {
      if (canvas.width !== keys) canvas.width = keys;
      if (canvas.height !== queries) canvas.height = queries;
      canvas.style.aspectRatio = `${keys} / ${queries}`; // cross-attention isn't square
      const image = new ImageData(keys, queries);
      const pixels = new Uint32Array(image.data.buffer);
      const start = index * queries * keys;
      for (let at = 0; at < pixels.length; at++) pixels[at] = WORDS[cells[start + at]];
      canvas.getContext("2d").putImageData(image, 0, 0);
    });
  }

  /** Mark a head as selected; one that isn't there selects none. */
  select(layer, head) {
    this.selection = { layer, head };
    this.showSelection();
  }

  showSelection() {
    this.selected = this.selection && this.card(this.selection.layer, this.selection.head);
    for (const card of this.cards) attribute(card.button, "aria-pressed", String(card === this.selected));
    const isThere = this.shown.includes(this.focusable);
    if (!isThere || !this.focusable.button.matches(":focus")) {
      this.makeFocusable(this.shown.includes(this.selected) ? this.selected : this.shown[0]);
    }
    this.readOut(null);
  }

  card(layer, head) {
    const row = this.layers.indexOf(layer);
    return row >= 0 && head >= 0 && head < this.heads ? this.cards[row * this.heads + head] : null;
  }

  readOut(card) {
    if (card) this.onPoint?.(card.layer, card.head);
    const described = card ?? this.selected;
    const changed = described && this.changedHeads.has(`${described.layer},${described.head}`) ? "changed" : "";
    const words = described ? [nameOf(described), described.caption, changed, described === this.selected ? "selected" : ""] : [];
    put(this.readout, words.filter(Boolean).join(", "));
  }
}

function nameOf({ layer, head }) {
  return `Layer ${layer}, head ${head}`;
}

function heading(kind, word, number) {
  const made = node("div", `heading ${kind}`);
  const text = node("span", "", made);
  put(node("span", "word", text), word && `${word} `);
  text.append(number);
  attribute(made, "aria-hidden", "true"); // every button has the same words in its label
  return made;
}

function makeCard() {
  const button = node("button", "card");
  button.dataset.testid = "head-grid-head";
  return { button, canvas: node("canvas", "", button), name: node("span", "name", button), words: node("span", "caption", button) };
}

// Draws the QK and OV circuits of a head: what it would do with any pair of tokens, by its weights alone. They arrive as
// two narrow matrices with a row per token, and the picture is their product.

import { dotProducts, largestAbsolute } from "../arithmetic.js";
import { zoomByKey } from "../attention/zoom.js";
import { VectorBars } from "../vector_bars.js";
import { attribute, button, choice, node, offer, put } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { counted, exactNumber, plainNumber } from "../number_format.js";
import { composed, csvFile, png, saveBlob } from "../save.js";
import { tipWithin } from "../tooltip.js";
import { strongestPairs, turned } from "./circuit_matrix.js";
import { sublayerName } from "./plain_names.js";
import { attentionsOf } from "./structure.js";
/** @import { HeatmapData } from "../heatmap.js" */
/** @import { Fold } from "./analyses.js" */
/** @import { Circuit } from "./selection.js" */

const TALLEST = 520; // pixels of the picture
const MOST_NAMED = 6; // strongest pairs of each sign
const KINDS = {
  ov: {
    title: "OV: what it writes", axes: ["read", "predicted"], factors: ["value", "direction"],
    formula: "embedding(row) · W_V · W_O · W_U(column)",
    meaning: "Row: a token that the head attends to. Column: a predicted token. Number: how much attending to the one raises the logit of the other.",
    pair: (row, column, value) => `Reading “${row}” ${value < 0 ? "lowers" : "raises"} “${column}” by ${plainNumber(Math.abs(value), 3)}`,
    best: (column) => `it raises “${column}” most`,
  },
  qk: {
    title: "QK: what it looks for", axes: ["query", "key"], factors: ["query", "key"],
    formula: "embedding(row) · W_Q · W_Kᵀ · embedding(column) ÷ √d_head",
    meaning: "Row: the query’s token. Column: the key’s token. Number: the attention score that the one gives the other.",
    pair: (row, column, value) => `“${row}” ${value < 0 ? "avoids" : "looks for"} “${column}”: ${plainNumber(value, 3)}`,
    best: (column) => `it looks most for “${column}”`,
  },
};
const ALONE = {
  pre: " Computed from embeddings and weights alone, without norms, biases and whatever else is in the stream: compare the numbers, don’t take them as amounts.",
  other: " Computed from embeddings and weights alone, without later norms, biases and whatever else is in the stream: compare the numbers, don’t take them as amounts.",
  none: " Computed from embeddings and weights alone, without biases and whatever else is in the stream.",
};
const LACKS = { // why an attention has no circuit
  norm: "it normalizes queries and keys, so how well two fit is no product of two tables",
  clip: "it clips queries, keys and values, so what a head does is no product of two tables",
  uniform: "it compares nothing",
  memory: "it writes to the memory instead of the logits",
  head: "between what a head writes and the logits stands the prediction head, which isn’t linear",
};

export class Circuits {
  /** @type {Fold} */ details;
  /** @type {(change: { circuit: Circuit | null }) => void} */ tell;
  /** @type {Map<string, string>} */ titles; // of the attentions

  /** details: the fold, with its `body`. events: choose({ circuit }) when another circuit is selected. */
  constructor(details, { choose }) {
    Object.assign(this, { details, tell: choose, wish: "ov", isOwn: false });
    this.chosen = { attention: null, head: 0, kind: "ov", distance: 0, cell: null };
    const root = (this.root = node("section", "numbers circuits", details.body));
    attribute(root, "aria-label", "Circuits");
    const tools = node("div", "tools", root);
    this.attention = choice(tools, "Attention", (attention) => this.choose({ attention }));
    this.head = choice(tools, "Head", (head) => this.choose({ head: Number(head) }));
    this.kind = choice(tools, "Circuit", (kind) => {
      this.wish = kind; // kept for the next attention
      this.choose({});
    });
    this.distance = node("label", "distance", tools);
    this.slider = node("input", "", this.distance);
    Object.assign(this.slider, { type: "range", min: "0", step: "1" });
    attribute(this.slider, "aria-label", "How many tokens the key stands before the query");
    this.distanceSaid = node("output", "", this.distance);
    this.slider.addEventListener("input", () => this.choose({ distance: Number(this.slider.value) }));
    this.buttons = [button(tools, "PNG", () => this.saveDrawing()), button(tools, "CSV", () => this.saveTable())];
    this.meaning = node("p", "meaning", root);
    this.formula = node("p", "formula", root);
    this.shape = node("p", "shape", root);
    const drawn = node("div", "drawn", root);
    this.heatmap = new Heatmap(drawn, "The circuit", {
      point: (cell) => this.point(cell),
      select: ({ row, column }) => this.choose({ cell: [row, column] }),
      zoom: (window) => this.zoomTo(window),
    });
    drawn.addEventListener("keydown", (event) => this.matrix && zoomByKey(event, (change) => this.zoom(change)));
    this.readout = node("p", "readout", root);
    this.pairs = node("div", "pairs", root);
    this.hand = node("div", "by-hand", root);
    this.bars = new VectorBars(this.hand, "What the cell is made of", tipWithin(root));
    this.sum = node("p", "term", this.hand);
  }

  /** Show another pass; a model without attention has no circuits. */
  begin(pass, structure) {
    this.pass = pass;
    this.shown = null;
    this.titles = new Map(attentionsOf(structure).map(({ module, out }) => [module, sublayerName(structure.locations.get(out))]));
    const modules = [...this.titles.keys()];
    this.details.hidden = !modules.length;
    if (!modules.includes(this.chosen.attention)) Object.assign(this.chosen, { attention: modules[0] ?? null, cell: null });
    offer(this.attention, [...this.titles]);
    offer(this.head, Array.from({ length: pass.config.n_heads }, (_, head) => [String(head), String(head)]));
    this.settle();
  }

  /** Select what a link says: [kind, attention, head, distance, perhaps a cell]; null: follow the selection above. */
  setSelection(circuit) {
    this.isOwn = Boolean(circuit);
    if (!circuit || circuit.join() === this.selection?.join()) return;
    const [kind, attention, head, distance, ...cell] = circuit;
    Object.assign(this.chosen, { kind, attention, head, distance, cell: cell.length ? cell : null });
    Object.assign(this, { wish: kind, isAhead: true });
    this.settle();
  }

  /** What is selected, as a link says it. @returns {Circuit | null} */
  get selection() {
    const { kind, attention, head, distance, cell } = this.chosen;
    return (this.isOwn || this.details.open) && kind ? [kind, attention, head, distance, ...(cell ?? [])] : null;
  }

  /** Follow the selection above: an attention and a head, or null. */
  follow(attention, head) {
    const before = this.isAhead ? { attention, head } : this.followed; // a link has said both
    this.isAhead = false;
    this.followed = { attention, head };
    if (attention && attention !== before?.attention) this.chosen.attention = attention;
    if (head !== null && head !== before?.head) this.chosen.head = head;
    this.settle();
  }

  choose(change) {
    Object.assign(this.chosen, change);
    this.settle();
    this.isOwn = true;
    this.tell({ circuit: this.selection });
  }

  // Offer what this model has.
  settle() {
    const { pass, chosen } = this;
    if (!pass || !chosen.attention) return;
    chosen.head = Math.min(chosen.head, pass.config.n_heads - 1);
    const kinds = Object.keys(KINDS).filter((kind) => pass.metadata.circuits[chosen.attention].includes(kind));
    const kind = kinds.includes(this.wish) ? this.wish : kinds[0] ?? null;
    if (kind !== chosen.kind) Object.assign(chosen, { kind, cell: null });
    offer(this.kind, kinds.map((kind) => [kind, KINDS[kind].title]));
    Object.assign(this.attention, { value: chosen.attention });
    this.head.value = String(chosen.head);
    this.kind.value = chosen.kind ?? "";
    this.slider.max = String(pass.config.context_length - 1);
    chosen.distance = Math.min(chosen.distance, pass.config.context_length - 1);
    this.slider.value = String(chosen.distance);
    this.distance.hidden = !this.turns;
  }

  /** Why this attention lacks a kind of circuit. */
  lacks(kind) {
    const { pass, chosen: { attention } } = this;
    if (pass.config.qkv_clip) return LACKS.clip;
    if (kind === "ov") return attention.startsWith("encoder.") ? LACKS.memory : LACKS.head;
    return pass.describe(`${attention}.q_norm.hook_out`) ? LACKS.norm : LACKS.uniform;
  }

  // Whether positions rotate queries and keys.
  get turns() {
    return this.chosen.kind === "qk" && Boolean(this.pass.describe(`${this.chosen.attention}.hook_rot_q`));
  }

  get name() {
    const { kind, attention, head } = this.chosen;
    return `circuit[${kind}, ${attention}, ${head}]`;
  }

  /** The missing parts. */
  needs(pass) {
    const { kind, attention, head } = this.chosen;
    return this.details.open && kind && !pass.more[`${this.name}.left`] ? [["circuit", kind, attention, head]] : [];
  }

  show(pass) {
    if (!this.details.open || !this.chosen.attention) return;
    const { kind, distance, cell } = this.chosen;
    const left = kind ? pass.more[`${this.name}.left`] : null;
    for (const part of [this.heatmap.plot, this.heatmap.legend, this.shape, this.pairs, this.formula, this.readout]) part.hidden = !left;
    this.buttons.forEach((button) => (button.disabled = !left));
    this.hand.hidden = !left || !cell;
    put(this.meaning, this.sayMeaning(pass, left));
    put(this.distanceSaid, distance ? `the key stands ${distance} ${distance === 1 ? "token" : "tokens"} before the query` : "the query looks at its own position");
    if (!left) return;
    const key = [pass.id, this.name, this.turns ? distance : 0].join();
    if (this.shown !== key) this.make(pass);
    this.shown = key;
    this.showCell();
  }

  sayMeaning(pass, left) {
    const { kind, attention } = this.chosen;
    const lacking = Object.keys(KINDS).filter((other) => !pass.metadata.circuits[attention].includes(other));
    const why = [...new Set(lacking.map((other) => this.lacks(other)))].join("; ");
    if (!kind) return `This attention has no circuit: ${why}.`;
    if (!left) return pass.absent.tensor;
    const changed = pass.changed.records.length ? " Changes of the model aren’t in it either." : "";
    const unfit = why && ` It has no ${lacking[0].toUpperCase()} circuit: ${why}.`;
    return KINDS[kind].meaning + (ALONE[pass.config.norm] ?? ALONE.other) + unfit + changed;
  }

  make(pass) {
    const { kind, attention, distance } = this.chosen;
    const of = (part) => pass.more[`${this.name}.${part}`];
    const [rows, columns] = ["rows", "columns"].map((part) => Array.from(of(part).data, (token) => pass.label("", "vocab", token)));
    const width = of("left").shape[1];
    const left = this.turns ? turned(of("left").data, width, distance, pass.equation(`${attention}.hook_rot_q`).constants) : of("left").data;
    const right = of("right").data;
    const values = dotProducts(left, right, width);
    this.matrix = { rows, columns, values, left, right, width, limit: largestAbsolute(values) || 1 };
    this.window = null;
    if (this.chosen.cell && !(this.chosen.cell[0] < rows.length && this.chosen.cell[1] < columns.length)) this.chosen.cell = null;
    put(this.formula, KINDS[kind].formula);
    put(this.shape, this.sayShape(pass, of("check").data));
    this.drawHeat();
    this.showPairs();
  }

  sayShape(pass, [deviation, magnitude]) {
    const { rows, columns, width } = this.matrix;
    const { vocab_size: all, d_model: wide } = pass.config;
    const some = rows.length < all ? `Of ${all.toLocaleString("en")} tokens the text's and those with the strongest rows and columns. ` : "";
    const same = `equal to the product through one ${wide} × ${wide} matrix (largest difference ${plainNumber(deviation, 2)}, largest number ${plainNumber(magnitude, 3)})`;
    return `${some}${rows.length} × ${columns.length} numbers, the product of a ${rows.length} × ${width} and a ${width} × ${columns.length} matrix, ${same}.`;
  }

  drawHeat() {
    const { rows, columns, values, limit } = this.matrix;
    /** @type {HeatmapData} */
    const data = { values, rows: rows.length, columns: columns.length, rowLabels: rows, columnLabels: columns, kind: "scores", limit, tallest: TALLEST };
    this.heatmap.show(data, this.window);
    attribute(this.heatmap.marks, "aria-label", `Circuit of ${this.titles.get(this.chosen.attention)}, head ${this.chosen.head}: ${rows.length} × ${columns.length} numbers`);
  }

  sentence(row, column) {
    const { rows, columns, values } = this.matrix;
    return KINDS[this.chosen.kind].pair(rows[row], columns[column], values[row * columns.length + column]);
  }

  /** The strongest pairs, as buttons that choose their cell. */
  showPairs() {
    const { columns, values } = this.matrix;
    const { most, least } = strongestPairs(values, MOST_NAMED);
    this.pairs.replaceChildren(...Object.entries({ Strongest: most, "Most negative": least }).map(([title, cells]) => {
      const list = node("ul", "");
      attribute(list, "aria-label", title);
      put(node("li", "title", list), title);
      for (const at of cells) {
        /** @type {[row: number, column: number]} */
        const cell = [Math.floor(at / columns.length), at % columns.length];
        button(node("li", "", list), this.sentence(...cell), () => this.choose({ cell }));
      }
      return list;
    }));
  }

  get selected() {
    const { cell } = this.chosen;
    return cell ? { row: cell[0], column: cell[1] } : null;
  }

  showCell() {
    this.point(null);
    if (!this.selected) return;
    const { left, right, width, values, columns } = this.matrix;
    const { row, column } = this.selected;
    const [own, other] = [left.subarray(row * width, (row + 1) * width), right.subarray(column * width, (column + 1) * width)];
    const products = Float64Array.from(own, (value, at) => value * other[at]);
    const names = [...KINDS[this.chosen.kind].factors, "product"];
    this.bars.show([own, other, products].map((values, at) => ({ name: names[at], values, limit: largestAbsolute(values) })));
    put(this.sum, `The sum of the ${counted(width, "product")} is ${exactNumber(values[row * columns.length + column], 6)}.`);
  }

  /** Describe the cell under the pointer, or else the selected one and the best of its row. */
  point(cell) {
    if (!this.matrix) return;
    this.heatmap.mark(this.selected, cell);
    const named = cell ?? this.selected;
    if (!named) {
      put(this.readout, "Point at a cell to see its number; click or tap one to see the products that it is the sum of.");
      return;
    }
    const { columns, values } = this.matrix;
    const own = values.subarray(named.row * columns.length, (named.row + 1) * columns.length);
    const best = own.reduce((largest, value, at) => (value > own[largest] ? at : largest), 0);
    const compared = best === named.column ? ", more than any other token" : `; ${KINDS[this.chosen.kind].best(columns[best])}`;
    put(this.readout, `${this.sentence(named.row, named.column)}${compared}.`);
  }

  zoom(change) {
    const { rows, columns } = this.matrix;
    this.zoomTo(change(this.window, this.selected ?? { row: 0, column: 0 }, { queries: rows.length, keys: columns.length }));
  }

  zoomTo(window) {
    this.window = window;
    this.drawHeat();
    this.point(null);
  }

  get fileName() {
    const { kind, attention, head, distance } = this.chosen;
    return [this.pass.title, kind, attention, `head${head}`, ...(this.turns ? [`distance${distance}`] : [])].join("-");
  }

  async saveDrawing() {
    const { kind, attention, head } = this.chosen;
    const pictures = [{ title: `${KINDS[kind].axes[0]} × ${KINDS[kind].axes[1]}`, canvas: this.heatmap.picture }];
    saveBlob(`${this.fileName}.png`, await png(composed(this.root, `${this.titles.get(attention)}, head ${head}: ${KINDS[kind].title}`, pictures)));
  }

  saveTable() {
    const { rows, columns, values } = this.matrix;
    const table = Array.from(values, (value, at) => [rows[Math.floor(at / columns.length)], columns[at % columns.length], value]);
    saveBlob(`${this.fileName}.csv`, csvFile([...KINDS[this.chosen.kind].axes, "value"], table));
  }

  /** Redraw: the page has another size or other colours. */
  draw() {
    this.heatmap.refresh();
    this.bars.refresh();
    if (!this.details.open || !this.matrix) return;
    this.heatmap.draw();
    if (this.chosen.cell) this.bars.draw();
  }
}

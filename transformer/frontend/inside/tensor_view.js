// Draws one tensor: a heatmap of its numbers, its meaning, formula, shape and histogram.

import { largestAbsolute } from "../arithmetic.js";
import { closer, farther, following, zoomByKey } from "../attention/zoom.js";
import { VectorBars } from "../vector_bars.js";
import { attribute, button, node, offer, onWidth, put, putBoth, untranslated } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { exactNumber, plainNumber } from "../number_format.js";
import { countOf } from "../recording.js";
import { composed, csvFile, png, saveBlob } from "../save.js";
import { tipWithin } from "../tooltip.js";
import { valueInWords } from "./cell_view.js";
import { keyHeadOf } from "../attention_config.js";
import { plainName } from "./plain_names.js";
import { unitOf } from "./pass.js";
import { TensorSlice, sliceDims } from "./tensor_slice.js";
import { CellInputs } from "./cell_inputs.js";
/** @import { InsidePass } from "./pass.js" */

const TALLEST = 440; // pixels of the picture
const PITCH = 16; // height of a row, if there is room
const DIGITS = 4; // of a tensor's statistics
const LISTED = 4096; // the most indices that a list offers
const HELD = { vocab: "Token", head: "Head", kv_head: "Key–value head", part: "Part" }; // labels of pickers

export class TensorView {
  /** @type {InsidePass} */ pass;
  /** @type {string} */ name;
  /** @type {number[] | null} */ cell;
  /** @type {number | null} */ token;
  /** @type {number | null} */ head;
  /** @type {TensorSlice} */ slice;
  /** @type {Record<string, number>} */ fixed; // the index of each dimension that isn't drawn
  /** @type {boolean | null} */ isThere;

  /** events: cell(index) is selected, slice(head) should be drawn, open(name) opens another tensor. */
  constructor(parent, events) {
    this.events = events;
    const root = (this.root = node("section", "numbers tensor", parent));
    attribute(root, "aria-label", "Tensor");
    const header = node("header", "", root);
    this.title = node("h2", "", header);
    const tools = node("div", "tools", header);
    this.pickers = node("span", "pickers", tools);
    button(tools, "+", () => this.zoom(closer), { words: "Zoom in on the chosen cell (+)" });
    this.farther = button(tools, "−", () => this.zoom(farther), { words: "Zoom out (−)" });
    this.whole = button(tools, "All", () => this.zoomTo(null), { words: "All of the tensor (0)" });
    button(tools, "PNG", () => this.saveDrawing(), { words: "Save the picture (PNG)" });
    button(tools, "CSV", () => this.saveTable(), { words: "Save the numbers that are drawn as a table (CSV)" });
    this.meaning = node("p", "meaning", root);
    this.formula = untranslated(node("p", "formula", root));
    const drawn = node("div", "drawn", root);
    this.heatmap = new Heatmap(drawn, "The numbers of the tensor", {
      point: (cell) => this.point(cell),
      select: (cell) => this.events.cell?.(this.slice.indexOf(cell)),
      zoom: (window) => this.zoomTo(window),
    });
    this.readout = node("p", "readout", root);
    this.hand = node("div", "cell", root);
    this.hand.dataset.part = "cell"; // for the tour
    this.pictures = new CellInputs(root, (name) => this.events.open?.(name));
    this.facts = node("dl", "facts", root);
    this.histogram = new VectorBars(root, "How many numbers lie where", tipWithin(root));
    this.shape = node("p", "shape", root);
    this.sources = links(root, "Made of");
    this.readers = links(root, "Read by");
    drawn.addEventListener("keydown", (event) => zoomByKey(event, (change) => this.zoom(change)));
    this.fixed = {};
    onWidth(root, () => this.draw());
  }

  /**
   * head: to draw; null for the cell's, or the first. cell: the selected index, or null. token: the selected position, or null.
   *
   * @param {InsidePass} pass
   * @param {string} name
   * @param {{ head?: number | null, cell?: number[] | null, token?: number | null }} [looked]
   */
  show(pass, name, { head = null, cell = null, token = null } = {}) {
    const entry = pass.describe(name);
    const isNew = this.pass !== pass || this.name !== name;
    const { held } = sliceDims(entry.dims, pass.isByRow(name) ? 1 : 2);
    const before = isNew ? {} : this.fixed;
    const isOtherHead = head !== null && (isNew || head !== this.head); // a key–value head may be shared by several
    const isMoved = String(cell) !== String(this.cell) || isNew;
    const fixed = Object.fromEntries(held.map((dim) => {
      const own = cell && isMoved ? cell[entry.dims.indexOf(dim)] : null;
      const size = entry.sizes[entry.dims.indexOf(dim)];
      const first = { head: head ?? before.head, kv_head: isOtherHead ? keyHeadOf(pass.config, head) : before.kv_head, pos: token, vocab: before.vocab ?? pass.ids.text[token ?? 0] };
      return [dim, Math.min(own ?? (dim in first ? first[dim] : before[dim]) ?? 0, size - 1)];
    }));
    const isThere = pass.has(name, fixed.head ?? (pass.isByRow(name) ? fixed[held[0]] : null));
    const isRedrawn = isNew || JSON.stringify(fixed) !== JSON.stringify(this.fixed) || isThere !== this.isThere;
    Object.assign(this, { pass, name, cell, token, fixed, isThere, head: head ?? this.head });
    if (isNew) this.window = null;
    if (isRedrawn) {
      this.slice = new TensorSlice(pass, name, fixed);
      this.describe(entry);
      this.showFacts();
    }
    if (this.window && this.selected?.column != null && cell) this.window = following(this.window, this.selected);
    if (isRedrawn || this.window !== this.drawnWindow) this.drawHeat();
    this.pictures.show(pass, name, cell);
    this.point(null);
    attribute(this.root, "data-state", isThere ? "shown" : "waiting");
    attribute(this.root, "aria-busy", String(!isThere && !pass.isComplete));
  }

  /** The selected cell, or the row of the selected token, which is outlined. */
  get selected() {
    const { slice, cell, token } = this;
    if (cell) return slice.dims.every((dim, axis) => slice.fixed[dim] === undefined || slice.fixed[dim] === cell[axis]) ? slice.cellAt(cell) : null;
    const rows = slice.dims[slice.axes[0]];
    return token !== null && (rows === "pos" || rows === "query") && token < slice.rows ? { row: token, column: null } : null;
  }

  /** The y of the outlined row in the window; below everything if there is none. */
  get selectedTop() {
    const { heatmap: { marks, plotArea, window }, selected } = this;
    return selected && plotArea ? marks.getBoundingClientRect().top + plotArea.top + (selected.row - window.top) * plotArea.cellHeight : Infinity;
  }

  /** The row that is drawn, or asked for, of a tensor that arrives row by row. */
  heldAt(pass, name, token) {
    const [dim] = pass.describe(name).dims;
    if (dim === "pos") return token;
    return this.name === name ? this.fixed[dim] : pass.ids.text[token];
  }

  describe({ meaning, formula, dims, sizes, kind }) {
    const { pass, name } = this;
    const plain = (id) => plainName(id, pass.config);
    putBoth(this.title, plain(name), name);
    put(this.meaning, meaning);
    put(this.formula, formula);
    this.formula.hidden = !formula;
    const numbers = countOf(sizes);
    const shape = `${dims.join(" × ")} = ${sizes.join(" × ")}`;
    put(this.shape, `${shape}: ${numbers.toLocaleString("en")} ${numbers === 1 ? "number" : "numbers"}${kind === "parameter" ? ", learned" : ""}`);
    const open = (id) => this.events.open?.(id);
    fill(this.sources, [...new Set(pass.operands(name).map((operand) => operand.name))], plain, open);
    fill(this.readers, pass.readers(name), plain, open);
    this.pickers.replaceChildren(...Object.entries(this.fixed).map(([dim, at]) => this.picker(dim, at, sizes[dims.indexOf(dim)])));
  }

  picker(dim, at, size) {
    const label = document.createElement("label");
    label.append(`${HELD[dim] ?? dim} `);
    if (size > LISTED) return this.numberPicker(label, dim, at, size);
    const select = node("select", "", label);
    attribute(select, "aria-label", HELD[dim] ?? dim);
    offer(select, Array.from({ length: size }, (_, number) => [number, String(this.pass.label(this.name, dim, number))]));
    select.value = String(at);
    select.addEventListener("change", () => {
      const chosen = Number(select.value);
      if (dim === "head") this.events.slice?.(chosen);
      this.hold({ [dim]: chosen });
      this.pickers.querySelectorAll("select")[Object.keys(this.fixed).indexOf(dim)]?.focus(); // the picker was made anew
    });
    return label;
  }

  // Too many indices for a list, such as a vocabulary's: a number field.
  numberPicker(label, dim, at, size) {
    const input = node("input", "", label);
    Object.assign(input, { type: "number", min: 0, max: size - 1, value: at, title: this.pass.label(this.name, dim, at) });
    attribute(input, "aria-label", HELD[dim] ?? dim);
    input.addEventListener("change", () => {
      const chosen = Math.round(Number(input.value));
      if (chosen >= 0 && chosen < size) this.hold({ [dim]: chosen });
      else input.value = at;
    });
    return label;
  }

  /** Draw another slice. */
  hold(change) {
    this.fixed = { ...this.fixed, ...change };
    const { pass, name, cell, token, fixed } = this;
    this.isThere = null;
    this.show(pass, name, { head: fixed.head ?? null, cell, token });
    this.events.row?.();
  }

  drawHeat() {
    const { slice } = this;
    this.drawnWindow = this.window;
    const isSquare = slice.dims[slice.axes[0]] === "query";
    const pitch = isSquare ? undefined : Math.min(PITCH, TALLEST / slice.rows);
    const { rows, columns, rowLabels, columnLabels, kind, limit } = slice;
    const [rowTitle, columnTitle] = [rowLabels, columnLabels].map((labels, at) => (labels ? unitOf(slice.dims[slice.axes[at]]) : undefined));
    this.heatmap.show({
      values: slice.drawn, rows, columns, rowLabels, columnLabels, rowTitle, columnTitle, kind, limit, pitch, tallest: isSquare ? 1.5 * TALLEST : TALLEST,
    }, this.window);
    attribute(this.heatmap.marks, "aria-label", `${this.name}: ${rows} × ${columns} numbers`);
    for (const made of [this.farther, this.whole]) attribute(made, "aria-disabled", String(!this.window));
  }

  /** Describe the cell under the pointer, or else the selected one. */
  point(cell) {
    const { slice, selected, pass, name } = this;
    if (!slice) return;
    this.heatmap.mark(selected, cell);
    const named = cell ?? (selected?.column != null ? selected : null);
    if (!named) {
      put(this.readout, this.isThere ? "Point at a cell to see its number; click or tap one to see how it is computed." : pass.absent.tensor);
      return;
    }
    const index = slice.indexOf(named);
    const value = slice.values ? valueInWords(name, slice.values[named.row * slice.columns + named.column]) : pass.absent.number;
    put(this.readout, `${pass.cellInWords(name, index)}: ${value}`);
  }

  showFacts() {
    const { slice, pass, name } = this;
    const statistics = slice.statistics;
    const whole = pass.statistics(name);
    const shown = statistics ?? { ...whole, smallest: { value: whole.smallest }, largest: { value: whole.largest } };
    const isPart = Object.keys(this.fixed).length > 0;
    const written = (value) => exactNumber(value, DIGITS);
    const fact = (title, value, extreme) => {
      const group = document.createElement("div");
      put(node("dt", "", group), title);
      const entry = untranslated(node("dd", "", group));
      if (!extreme?.cell) {
        put(entry, value);
        return group;
      }
      const index = slice.indexOf(extreme.cell);
      const made = button(entry, value, () => this.events.cell?.(index), { words: pass.cellInWords(name, index) });
      attribute(made, "aria-label", `${title} ${value}, ${made.title}`);
      return group;
    };
    this.facts.replaceChildren(
      fact("mean", written(shown.mean)), fact("standard deviation", written(shown.spread)),
      fact("smallest", written(shown.smallest.value), shown.smallest), fact("largest", written(shown.largest.value), shown.largest),
      ...(isPart && statistics ? [fact("the whole tensor", `${written(whole.mean)} ± ${written(whole.spread)}, ${written(whole.smallest)} to ${written(whole.largest)}`)] : []),
    );
    this.histogram.plot.hidden = !statistics;
    if (!statistics) return;
    const { counts, from, to } = slice.histogram(statistics);
    const edge = (at) => plainNumber(from + ((to - from) * at) / counts.length, 3);
    this.histogram.show([{ name: "how many", values: counts, limit: largestAbsolute(counts), upward: true, plain: true }], {
      label: (at) => `from ${edge(at)} to ${edge(at + 1)}`,
    });
  }

  zoom(change) {
    const { rows, columns } = this.slice;
    const { row, column } = this.selected ?? { row: rows - 1, column: 0 };
    this.zoomTo(change(this.window, { row, column: column ?? 0 }, { queries: rows, keys: columns }));
  }

  /** window: a heatmap's zoom, or null for everything. */
  zoomTo(window) {
    if (!this.slice) return;
    this.window = window;
    this.drawHeat();
    this.point(null);
  }

  get fileName() {
    return [this.pass.title, this.name, ...Object.entries(this.fixed).map(([dim, at]) => `${dim}${at}`)].join("-");
  }

  async saveDrawing() {
    const held = Object.entries(this.fixed).map(([dim, at]) => `, ${dim} ${this.pass.label(this.name, dim, at)}`).join("");
    const pictures = [{ title: this.shape.textContent, canvas: this.heatmap.picture }];
    saveBlob(`${this.fileName}.png`, await png(composed(this.root, `${this.name}${held}`, pictures)));
  }

  /** The slice as a table with a row per cell: index, tokens, number. */
  saveTable() {
    const { slice, name, pass } = this;
    if (!slice.values) return;
    const tokens = slice.dims.filter((dim) => pass.tokensAlong(name, dim) || dim === "vocab");
    const rows = Array.from(slice.values, (value, at) => {
      const index = slice.indexOf({ row: Math.floor(at / slice.columns), column: at % slice.columns });
      return [...index, ...tokens.map((dim) => pass.label(name, dim, index[slice.dims.indexOf(dim)])), value];
    });
    const columns = [...slice.dims, ...tokens.map((dim) => `${dim} token`), "value"];
    saveBlob(`${this.fileName}.csv`, csvFile(columns, rows));
  }

  /** Redraw: the page has another size or other colours. */
  draw() {
    if (!this.slice) return;
    this.heatmap.refresh();
    this.heatmap.draw();
    this.pictures.draw();
    this.histogram.refresh();
    if (!this.histogram.plot.hidden) this.histogram.draw();
  }
}

/** A line of links to other tensors. */
function links(parent, title) {
  const line = node("p", "links", parent);
  attribute(line, "role", "group");
  attribute(line, "aria-label", title);
  line.append(`${title} `);
  return { line, list: node("span", "", line) };
}

function fill({ line, list }, names, plain, open) {
  line.hidden = !names.length;
  list.replaceChildren(...names.map((name) => {
    const link = button(null, "", () => open(name));
    putBoth(link, plain(name), name);
    return link;
  }));
}

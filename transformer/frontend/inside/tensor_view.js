// One tensor: a heatmap of its numbers, its meaning, formula, shape and histogram.

import { largestAbsolute } from "../arithmetic.js";
import { closer, farther, following } from "../attention/zoom.js";
import { Bars } from "../bars.js";
import { attribute, node, put, putBoth } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { exactNumber, plainNumber } from "../numbers.js";
import { composed, csvFile, png, saveBlob } from "../save.js";
import { Tip, tipIn } from "../tip.js";
import { valueInWords } from "./cell_view.js";
import { keyHeadOf } from "../shape.js";
import { plainName } from "./plain_names.js";
import { Plane, planeDims } from "./plane.js";
import { Sources } from "./sources.js";
/** @import { InsidePass } from "./pass.js" */

const TALLEST = 440; // pixels of the picture
const PITCH = 16; // pixels of a row where there is room
const DIGITS = 4; // of a number that sums up a tensor
const LISTED = 4096; // places that can be picked from a list
const HELD = { vocab: "Token", head: "Head", kv_head: "Key–value head", part: "Part" }; // what stands before a picker

export class TensorView {
  /** @type {InsidePass} */ pass;
  /** @type {string} */ name;
  /** @type {number[] | null} */ cell;
  /** @type {number | null} */ token;
  /** @type {number | null} */ head;
  /** @type {Plane} */ plane;
  /** @type {Record<string, number>} */ fixed; // where dimensions that aren't drawn are held
  /** @type {boolean | null} */ isThere;

  /** events: cell(place) was chosen, slice(head) is to be drawn, open(name) another tensor. */
  constructor(parent, events) {
    this.events = events;
    const root = (this.root = node("section", "numbers tensor", parent));
    attribute(root, "aria-label", "Tensor");
    const header = node("header", "", root);
    this.title = node("h2", "", header);
    const tools = node("div", "tools", header);
    this.pickers = node("span", "pickers", tools);
    this.buttons = {};
    const button = (name, title, words, press) => {
      const made = (this.buttons[name] = node("button", "", tools));
      made.type = "button";
      made.title = words;
      attribute(made, "aria-label", words);
      put(made, title);
      made.addEventListener("click", press);
    };
    button("closer", "+", "Zoom in on the chosen cell (+)", () => this.zoom(closer));
    button("farther", "−", "Zoom out (−)", () => this.zoom(farther));
    button("whole", "All", "All of the tensor (0)", () => this.zoomTo(null));
    button("png", "PNG", "Save the picture (PNG)", () => this.saveDrawing());
    button("csv", "CSV", "Save the numbers that are drawn as a table (CSV)", () => this.saveTable());
    this.meaning = node("p", "meaning", root);
    this.formula = node("p", "formula", root);
    const drawn = node("div", "drawn", root);
    this.heatmap = new Heatmap(drawn, "The numbers of the tensor", {
      point: (cell) => this.point(cell),
      select: (cell) => this.events.cell?.(this.plane.place(cell)),
      zoom: (window) => this.zoomTo(window),
    });
    this.readout = node("p", "readout", root);
    this.pictures = new Sources(root, (name) => this.events.open?.(name));
    this.facts = node("dl", "facts", root);
    const tip = new Tip(tipIn(root));
    tip.closesWithin(root);
    this.histogram = new Bars(root, "How many numbers lie where", tip);
    this.shape = node("p", "shape", root);
    this.sources = links(root, "Made of");
    this.readers = links(root, "Read by");
    drawn.addEventListener("keydown", (event) => this.onKey(event));
    this.fixed = {};
    this.width = 0;
    new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width === this.width) return;
      this.width = contentRect.width;
      this.draw();
    }).observe(root);
  }

  /**
   * head: which is drawn, null for that of the cell, or the first; cell: the chosen place, or null; token: the position looked at, or null.
   *
   * @param {InsidePass} pass
   * @param {string} name
   * @param {{ head?: number | null, cell?: number[] | null, token?: number | null }} [looked]
   */
  show(pass, name, { head = null, cell = null, token = null } = {}) {
    const entry = pass.describe(name);
    const isNew = this.pass !== pass || this.name !== name;
    const { held } = planeDims(entry.dims, pass.isByRow(name) ? 1 : 2);
    const before = isNew ? {} : this.fixed;
    const isOtherHead = head !== null && (isNew || head !== this.head); // it brings the one that it shares with others
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
      this.plane = new Plane(pass, name, fixed);
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

  /** What is outlined: the chosen cell, or the row of the token that is looked at. */
  get selected() {
    const { plane, cell, token } = this;
    if (cell) return plane.dims.every((dim, axis) => plane.fixed[dim] === undefined || plane.fixed[dim] === cell[axis]) ? plane.cellAt(cell) : null;
    const rows = plane.dims[plane.axes[0]];
    return token !== null && (rows === "pos" || rows === "query") && token < plane.rows ? { row: token, column: null } : null;
  }

  /** The row that is drawn, or will be, of a tensor that comes row by row. */
  heldAt(pass, name, token) {
    const [dim] = pass.describe(name).dims;
    if (dim === "pos") return token;
    return this.name === name ? this.fixed[dim] : pass.ids.text[token];
  }

  describe({ meaning, formula, dims, sizes, kind }) {
    const { pass, name } = this;
    const plain = (each) => plainName(each, pass.config.norm);
    putBoth(this.title, plain(name), name);
    put(this.meaning, meaning);
    put(this.formula, formula);
    this.formula.hidden = !formula;
    const numbers = sizes.reduce((product, size) => product * size, 1);
    const shape = `${dims.join(" × ")} = ${sizes.join(" × ")}`;
    put(this.shape, `${shape}: ${numbers.toLocaleString("en")} ${numbers === 1 ? "number" : "numbers"}${kind === "parameter" ? ", learned" : ""}`);
    const open = (each) => this.events.open?.(each);
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
    for (let each = 0; each < size; each++) {
      const option = node("option", "", select);
      option.value = String(each);
      put(option, this.pass.label(this.name, dim, each));
    }
    select.value = String(at);
    select.addEventListener("change", () => {
      const chosen = Number(select.value);
      if (dim === "head") this.events.slice?.(chosen);
      this.hold({ [dim]: chosen });
      this.pickers.querySelectorAll("select")[Object.keys(this.fixed).indexOf(dim)]?.focus(); // it was made anew
    });
    return label;
  }

  // Of very many places, such as those of a vocabulary, one is chosen by its number.
  numberPicker(label, dim, at, size) {
    const box = node("input", "", label);
    Object.assign(box, { type: "number", min: 0, max: size - 1, value: at, title: this.pass.label(this.name, dim, at) });
    attribute(box, "aria-label", HELD[dim] ?? dim);
    box.addEventListener("change", () => {
      const chosen = Math.round(Number(box.value));
      if (chosen >= 0 && chosen < size) this.hold({ [dim]: chosen });
      else box.value = at;
    });
    return label;
  }

  /** Draw another part of the tensor. */
  hold(change) {
    this.fixed = { ...this.fixed, ...change };
    const { pass, name, cell, token, fixed } = this;
    this.isThere = null;
    this.show(pass, name, { head: fixed.head ?? null, cell, token });
    this.events.row?.();
  }

  drawHeat() {
    const { plane } = this;
    this.drawnWindow = this.window;
    const isSquare = plane.dims[plane.axes[0]] === "query";
    const pitch = isSquare ? undefined : Math.min(PITCH, TALLEST / plane.rows);
    const { rows, columns, rowLabels, columnLabels, kind, limit } = plane;
    this.heatmap.show({
      values: plane.drawn, rows, columns, rowLabels, columnLabels, kind, limit, pitch, tallest: isSquare ? 1.5 * TALLEST : TALLEST,
    }, this.window);
    attribute(this.heatmap.marks, "aria-label", `${this.name}: ${rows} × ${columns} numbers`);
    for (const name of ["farther", "whole"]) attribute(this.buttons[name], "aria-disabled", String(!this.window));
  }

  /** Name the cell that is pointed at, or else the chosen one. */
  point(cell) {
    const { plane, selected, pass, name } = this;
    if (!plane) return;
    this.heatmap.mark(selected, cell);
    const named = cell ?? (selected?.column != null ? selected : null);
    if (!named) {
      put(this.readout, this.isThere ? "Point at a cell to see its number; click it to see how it is computed." : pass.absent.tensor);
      return;
    }
    const place = plane.place(named);
    const value = plane.values ? valueInWords(name, plane.values[named.row * plane.columns + named.column]) : pass.absent.number;
    put(this.readout, `${pass.inWords(name, place)}: ${value}`);
  }

  showFacts() {
    const { plane, pass, name } = this;
    const found = plane.statistics;
    const whole = pass.statistics(name);
    const shown = found ?? { ...whole, smallest: { value: whole.smallest }, largest: { value: whole.largest } };
    const isPart = Object.keys(this.fixed).length > 0;
    const said = (value) => exactNumber(value, DIGITS);
    const fact = (title, value, extreme) => {
      const group = document.createElement("div");
      put(node("dt", "", group), title);
      const told = node("dd", "", group);
      if (!extreme?.cell) {
        put(told, value);
        return group;
      }
      const button = node("button", "", told);
      button.type = "button";
      put(button, value);
      const place = plane.place(extreme.cell);
      attribute(button, "aria-label", `${title} ${value}, ${pass.inWords(name, place)}`);
      button.title = pass.inWords(name, place);
      button.addEventListener("click", () => this.events.cell?.(place));
      return group;
    };
    this.facts.replaceChildren(
      fact("mean", said(shown.mean)), fact("standard deviation", said(shown.spread)),
      fact("smallest", said(shown.smallest.value), shown.smallest), fact("largest", said(shown.largest.value), shown.largest),
      ...(isPart && found ? [fact("the whole tensor", `${said(whole.mean)} ± ${said(whole.spread)}, ${said(whole.smallest)} to ${said(whole.largest)}`)] : []),
    );
    this.histogram.plot.hidden = !found;
    if (!found) return;
    const { counts, from, to } = plane.histogram(found);
    const edge = (at) => plainNumber(from + ((to - from) * at) / counts.length, 3);
    this.histogram.show([{ name: "how many", values: counts, limit: largestAbsolute(counts), upward: true, plain: true }], {
      label: (at) => `from ${edge(at)} to ${edge(at + 1)}`,
    });
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+") this.zoom(closer);
    if (event.key === "-") this.zoom(farther);
    if (event.key === "0") this.zoomTo(null);
  }

  zoom(change) {
    const { rows, columns } = this.plane;
    const { row, column } = this.selected ?? { row: rows - 1, column: 0 };
    this.zoomTo(change(this.window, { row, column: column ?? 0 }, { queries: rows, keys: columns }));
  }

  /** window: as a heatmap's, or null for all of it. */
  zoomTo(window) {
    if (!this.plane) return;
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

  /** The numbers that are drawn, a row a cell: where it is, the tokens there, the number. */
  saveTable() {
    const { plane, name, pass } = this;
    if (!plane.values) return;
    const tokens = plane.dims.filter((dim) => pass.tokensAlong(name, dim) || dim === "vocab");
    const rows = Array.from(plane.values, (value, at) => {
      const place = plane.place({ row: Math.floor(at / plane.columns), column: at % plane.columns });
      return [...place, ...tokens.map((dim) => pass.label(name, dim, place[plane.dims.indexOf(dim)])), value];
    });
    const columns = [...plane.dims, ...tokens.map((dim) => `${dim} token`), "value"];
    saveBlob(`${this.fileName}.csv`, csvFile(columns, rows));
  }

  /** Draw again, in the page's present size and colours. */
  draw() {
    if (!this.plane) return;
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
    const button = node("button", "");
    button.type = "button";
    putBoth(button, plain(name), name);
    button.addEventListener("click", () => open(name));
    return button;
  }));
}

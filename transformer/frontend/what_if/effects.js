// Draws heatmaps of effects on one colour scale, row 0 at the bottom, in which a click or Enter selects a cell.

import { attribute, node, partsOf, property, put } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { plainNumber } from "../number_format.js";
import { composed, pngButton } from "../save.js";
import { tipWithin } from "../tooltip.js";
import { crossOut, writeNumbers } from "../cell_numbers.js";

/**
 * @typedef {object} EffectMatrix
 * @property {string} title
 * @property {(number | null)[][]} values (row, column); null where there is nothing to choose
 * @property {string[]} rows what they are called when a cell is read out: "layer 0"
 * @property {string[]} columns
 * @property {string[]} rowLabels as they are drawn
 * @property {string[]} columnLabels
 * @property {[row: number, column: number][]} marked the cells that are in force, which are crossed out
 *
 * @typedef {object} EffectData
 * @property {string} name what the picture is called
 * @property {[string, string]} sentences a cell's, if its number is at least 0 and if it is below; `{cell}` and `{value}`, the number without
 *   its sign, are filled in
 * @property {[string, string]} actions what choosing a cell does, and what it does to one that is in force
 * @property {number} limit where the colours end, either way
 * @property {number} pitch pixels of a row
 * @property {EffectMatrix[]} matrices
 *
 * @typedef {{ matrix: number, row: number, column: number }} EffectCell
 */

const WIDEST = 3.2; // of a cell, in heights of a row
const LEAST = 46; // pixels of a cell in which its number can be read
const KEYS = "Arrow keys go from cell to cell, Enter chooses one.";
const SET = "It is ablated now.";

const MARKUP = `
  <section class="effect-heatmaps" data-part="root" data-testid="effect-heatmaps">
    <div class="matrices" data-part="matrices"></div>
    <p class="sentence" data-part="sentence" role="status"></p>
    <div class="tools" data-part="tools"></div>
  </section>`;

export class EffectHeatmaps {
  /** @type {EffectData} */ data;
  /** @type {EffectCell | null} */ cursor = null;
  /** @type {EffectCell | null} */ pointed = null;
  /** @type {{ figure: HTMLElement, title: HTMLElement, heatmap: Heatmap }[]} */ figures = [];

  /** @param {HTMLElement} parent @param {(cell: EffectCell) => void} choose a cell was chosen in which there is something */
  constructor(parent, choose) {
    this.send = choose;
    parent.innerHTML = MARKUP; // constant
    const parts = (this.parts = partsOf(parent));
    this.tip = tipWithin(parts.root);
    pngButton(parts.tools, () => this.data.name.toLowerCase().replace(/[^a-z0-9]+/g, "-"), () => composed(parts.root, this.data.name, this.pictures, 1));
    new ResizeObserver(() => this.data && this.draw()).observe(parts.matrices);
  }

  /** @param {EffectData} data */
  show(data) {
    this.data = data;
    const { matrices } = data;
    while (this.figures.length > matrices.length) this.figures.pop().figure.remove();
    while (this.figures.length < matrices.length) this.figures.push(this.makeFigure(this.figures.length));
    property(this.parts.matrices, "--least", `${Math.max(...matrices.map(({ columns }) => LEAST * columns.length)) + 60}px`);
    attribute(this.parts.root, "aria-label", data.name);
    if (this.cursor && !this.has(this.cursor)) this.cursor = null; // other texts and models have other cells
    this.draw();
    this.say();
    if (this.pointed) this.point(this.pointed.matrix, this.has(this.pointed) ? this.pointed : null);
  }

  makeFigure(matrix) {
    const figure = node("figure", "", this.parts.matrices);
    const title = node("figcaption", "", figure);
    const heatmap = new Heatmap(figure, "", {
      point: (cell) => this.point(matrix, this.flipped(matrix, cell)),
      select: (cell) => this.choose({ matrix, ...this.flipped(matrix, cell) }),
      step: (cell) => this.moveCursor({ matrix, ...this.flipped(matrix, cell) }),
    });
    heatmap.marks.addEventListener("focus", () => {
      const isByKey = heatmap.marks.matches(":focus-visible");
      if (isByKey && this.cursor?.matrix !== matrix) this.moveCursor({ matrix, row: 0, column: 0 });
    });
    heatmap.marks.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      if (!event.repeat && this.cursor) this.choose(this.cursor);
    });
    return { figure, title, heatmap };
  }

  draw() {
    const { matrices, limit, name, pitch } = this.data;
    matrices.forEach((matrix, at) => {
      const { title, heatmap } = this.figures[at];
      const rows = matrix.rows.length, columns = matrix.columns.length;
      const numbers = Float64Array.from([...matrix.values].reverse().flat(), (value) => value ?? -Infinity);
      const written = numbers.slice();
      const marked = matrix.marked.map(([row, column]) => [rows - 1 - row, column]);
      for (const [row, column] of marked) {
        numbers[row * columns + column] = 0; // a change that is set has no colour and no number
        written[row * columns + column] = -Infinity;
      }
      const values = Float64Array.from(numbers, (value) => (value === -Infinity ? value : Math.min(Math.max(value, -limit), limit)));
      put(title, matrix.title);
      attribute(heatmap.marks, "aria-label", `${[name, matrix.title].filter(Boolean).join(": ")}. ${KEYS}`);
      heatmap.refresh();
      heatmap.show({
        values, rows, columns, rowLabels: [...matrix.rowLabels].reverse(), columnLabels: matrix.columnLabels, kind: "scores", limit,
        cut: matrices.some((matrix) => matrix.values.flat().some((value) => Math.abs(value ?? 0) > 1.001 * limit)), pitch, tallest: pitch * rows, widest: Math.round(WIDEST * pitch),
        above: (context) => {
          for (const [row, column] of marked) crossOut(context, heatmap, row, column);
          writeNumbers(context, heatmap, written);
        },
      }, null);
    });
    this.mark();
  }

  mark() {
    const within = (cell, matrix) => (cell?.matrix === matrix ? this.flipped(matrix, cell) : null);
    this.figures.forEach(({ heatmap }, at) => {
      heatmap.mark(within(this.cursor, at), within(this.pointed, at));
    });
  }

  point(matrix, cell) {
    const pointed = cell && { ...cell, matrix };
    this.pointed = pointed;
    this.mark();
    if (!pointed) return this.tip.hide();
    this.tip.showAt(...this.figures[matrix].heatmap.cornerOf(this.flipped(matrix, cell)), [this.sentence(pointed), ...this.act(pointed)]);
  }

  // A cell of the matrix in the heatmap, whose rows count from the top; or the other way round.
  flipped(matrix, cell) {
    return cell && { ...cell, row: this.data.matrices[matrix].rows.length - 1 - cell.row };
  }

  moveCursor(cell) {
    this.cursor = cell;
    this.mark();
    this.say();
  }

  choose(cell) {
    this.moveCursor(cell);
    if (this.valueOf(cell) !== null) this.send(cell);
  }

  has({ matrix, row, column }) {
    const shown = this.data.matrices[matrix];
    return Boolean(shown) && row < shown.rows.length && column < shown.columns.length;
  }

  valueOf({ matrix, row, column }) {
    return this.data.matrices[matrix].values[row][column];
  }

  isMarked({ matrix, row, column }) {
    return this.data.matrices[matrix].marked.some(([r, c]) => r === row && c === column);
  }

  sentence(cell) {
    const { rows, columns } = this.data.matrices[cell.matrix];
    const value = this.valueOf(cell);
    const words = `${rows[cell.row]}, ${columns[cell.column]}`;
    if (value === null) return `${words}: there is nothing here.`;
    const filled = { "{cell}": words, "{value}": plainNumber(Math.abs(value)) };
    const sentence = this.data.sentences[value < 0 ? 1 : 0].replace(/\{(?:cell|value)\}/g, (name) => filled[name]);
    return this.isMarked(cell) ? `${sentence} ${SET}` : sentence;
  }

  act(cell) {
    return this.valueOf(cell) === null ? [] : [`Click: ${this.data.actions[this.isMarked(cell) ? 1 : 0]}`];
  }

  say() {
    put(this.parts.sentence, this.cursor ? this.sentence(this.cursor) : "");
  }

  get pictures() {
    return this.figures.map(({ title, heatmap }) => ({ title: title.textContent, canvas: heatmap.picture }));
  }
}

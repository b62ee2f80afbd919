// Draws one matrix as a heatmap, whose cells can be read and chosen.
import { attribute, partsOf, put } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { labellingNote } from "../axis_labels.js";
import { plainNumber } from "../number_format.js";
import { composed, pngButton } from "../save.js";
import { tipWithin } from "../tooltip.js";

const ROW = 9; // pixels
const HIGHEST = 210; // pixels of all rows
const LOWEST = 120;
const FILLS = 4096; // pixels of a cell: columns take all the width there is
const KEYS = "Arrow keys go from cell to cell.";

const MARKUP = `
  <figure class="matrix" data-part="whole" data-testid="matrix">
    <div class="drawn" data-part="drawn"></div>
    <div class="foot">
      <span data-part="axes"></span>
      <span class="sentence" data-part="sentence" role="status"></span>
      <span data-part="tools"></span>
    </div>
  </figure>`;

export class Matrix {
  /** @type {{ name: string, across: string, down: string, unit: string, kind: "scores" | "weights", square: boolean, chooses: boolean, limit: number, labels: [string[], string[]] | null, offsets: [number, number] }} */ about;
  /** @type {Float32Array} */ values;
  /** @type {string[]} */ rowLabels;
  /** @type {string[]} */ columnLabels;
  /** @type {number} */ rows;
  /** @type {number} */ columns;
  /** @type {(event: string, value: any) => void} */ send;

  /** @param {{ root: HTMLElement }} parts */
  constructor({ root }) {
    root.innerHTML = MARKUP; // constant
    /** @type {Record<string, any>} */
    this.parts = { ...partsOf(root), root };
    const { parts } = this;
    this.cursor = this.pointed = null; // { row, column }
    this.tip = tipWithin(parts.whole);
    this.heatmap = new Heatmap(parts.drawn, "", {
      point: (cell) => this.point(cell),
      select: (cell) => this.choose(cell),
      step: (cell) => this.moveCursor(cell),
    });
    this.heatmap.marks.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.cursor && !event.repeat) this.choose(this.cursor);
    });
    pngButton(parts.tools, () => this.about.name.toLowerCase().replace(/[^a-z0-9]+/g, "-"),
      () => composed(parts.whole, this.about.name, [{ title: this.axes, canvas: this.heatmap.picture }]));
    new ResizeObserver(() => this.values && this.draw()).observe(parts.drawn);
  }

  /** @param {import("../recording.js").Recording} recording the tensor `values` (row, column), and `about`, its description */
  update({ tensors, metadata }, send) {
    const { shape: [rows, columns], data } = tensors.values;
    const selected = metadata.about.selected;
    Object.assign(this, { send, rows, columns, values: data, about: metadata.about });
    this.cursor = selected && { row: selected[0], column: selected[1] };
    const numbers = (length) => Array.from({ length }, (_, at) => `${at}`);
    const [rowLabels, columnLabels] = this.about.labels ?? [numbers(rows), numbers(columns)];
    Object.assign(this, { rowLabels, columnLabels });
    const { name, square, chooses } = this.about;
    this.parts.drawn.classList.toggle("square", square);
    this.parts.drawn.classList.toggle("chooses", chooses);
    attribute(this.heatmap.marks, "aria-label", `${name}. ${this.axes} ${KEYS}${chooses ? " Enter chooses one." : ""}`);
    this.draw();
    const { pointed } = this; // a finger's choice may have brought these numbers
    this.point(pointed && pointed.row < rows && pointed.column < columns ? pointed : null);
    this.say();
  }

  get axes() {
    return `Rows: ${this.about.down}. Columns: ${this.about.across}.`;
  }

  draw() {
    const { rows, columns, values, rowLabels, columnLabels, about } = this;
    this.heatmap.refresh();
    this.heatmap.show({
      values: Float64Array.from(values), rows, columns, rowLabels, columnLabels, kind: about.kind, limit: about.limit,
      ...(about.square ? {} : { widest: FILLS, tallest: Math.min(Math.max(ROW * rows, LOWEST), HIGHEST) }),
    }, null);
    put(this.parts.axes, `${this.axes}${about.chooses ? " Choose a number to see its formula." : ""} ${about.labels ? labellingNote(this.heatmap.steps) : ""}`);
    this.mark();
  }

  mark() {
    this.heatmap.mark(this.cursor, this.pointed);
  }

  point(cell) {
    this.pointed = cell;
    this.mark();
    if (!cell) return this.tip.hide();
    this.tip.showAt(...this.heatmap.cornerOf(cell), this.lines(cell));
  }

  moveCursor(cell) {
    this.cursor = cell;
    this.mark();
    this.say();
  }

  choose(cell) {
    this.moveCursor(cell);
    if (this.about.chooses) this.send("chosen", cell);
  }

  lines({ row, column }) {
    const { down, across, unit, labels, offsets } = this.about;
    const value = this.values[row * this.columns + column];
    return [
      labels ? `${down} ${labels[0][row]} at position ${offsets[0] + row}` : `${down} ${row}`,
      labels ? `${across} ${labels[1][column]} at position ${offsets[1] + column}` : `${across} ${column}`,
      value === -Infinity ? "hidden by the mask" : `${unit} ${plainNumber(value, 6)}`,
    ];
  }

  say() {
    put(this.parts.sentence, this.cursor ? `${this.lines(this.cursor).join(", ")}.` : "");
  }
}

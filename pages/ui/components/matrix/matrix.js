// A heatmap of one matrix. `data` is a recording: the tensor `values` (row, column) and `about`, its description.
import { attribute, put, withView } from "../../../../transformer/frontend/dom.js";
import { Heatmap } from "../../../../transformer/frontend/heatmap.js";
import { plainNumber } from "../../../../transformer/frontend/numbers.js";
import { readRecording } from "../../../../transformer/frontend/recording.js";
import { composed, pngButton } from "../../../../transformer/frontend/save.js";
import { Tip, tipIn } from "../../../../transformer/frontend/tip.js";

const ROW = 9; // pixels
const HIGHEST = 210; // pixels of all rows
const LOWEST = 120;
const FILLS = 4096; // pixels of a cell: columns take all the width there is
const KEYS = "Arrow keys go from cell to cell.";

class View {
  /** @type {{ name: string, across: string, down: string, unit: string, square: boolean, chooses: boolean, limit: number }} */ about;
  /** @type {Float32Array} */ values;
  /** @type {number} */ rows;
  /** @type {number} */ columns;
  /** @type {(event: string, value: any) => void} */ send;

  constructor(parts) {
    this.parts = parts;
    this.cursor = this.pointed = null; // { row, column }
    this.tip = new Tip(tipIn(parts.root));
    this.tip.closesWithin(parts.root);
    this.heatmap = new Heatmap(parts.drawn, "", {
      point: (cell) => this.point(cell),
      select: (cell) => this.choose(cell),
      step: (cell) => this.turnTo(cell),
    });
    this.heatmap.marks.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.cursor && !event.repeat) this.choose(this.cursor);
    });
    pngButton(parts.tools, () => this.about.name.toLowerCase().replace(/[^a-z0-9]+/g, "-"),
      () => composed(parts.root, this.about.name, [{ title: this.axes, canvas: this.heatmap.picture }]));
    new ResizeObserver(() => this.values && this.draw()).observe(parts.drawn);
  }

  update(bytes, send) {
    const { tensors, metadata } = readRecording(bytes);
    const { shape: [rows, columns], data } = tensors.values;
    const selected = metadata.about.selected;
    Object.assign(this, { send, rows, columns, values: data, about: metadata.about });
    this.cursor = selected && { row: selected[0], column: selected[1] };
    this.rowLabels = Array.from({ length: rows }, (_, row) => `${row}`);
    this.columnLabels = Array.from({ length: columns }, (_, column) => `${column}`);
    const { name, square, chooses } = this.about;
    this.parts.drawn.classList.toggle("square", square);
    this.parts.drawn.classList.toggle("chooses", chooses);
    attribute(this.heatmap.marks, "aria-label", `${name}. ${this.axes} ${KEYS}${chooses ? " Enter chooses one." : ""}`);
    put(this.parts.axes, `${this.axes}${chooses ? " Choose a number to see its formula." : ""}`);
    this.draw();
    this.point(null);
    this.say();
  }

  get axes() {
    return `Rows: ${this.about.down}. Columns: ${this.about.across}.`;
  }

  draw() {
    const { rows, columns, values, rowLabels, columnLabels, about } = this;
    this.heatmap.refresh();
    this.heatmap.show({
      values: Float64Array.from(values), rows, columns, rowLabels, columnLabels, kind: "scores", limit: about.limit,
      ...(about.square ? {} : { widest: FILLS, tallest: Math.min(Math.max(ROW * rows, LOWEST), HIGHEST) }),
    }, null);
    this.mark();
  }

  mark() {
    this.heatmap.mark(this.cursor, this.pointed);
  }

  point(cell) {
    this.pointed = cell;
    this.mark();
    if (!cell) return this.tip.hide();
    const { marks, box } = this.heatmap;
    const { left, top } = marks.getBoundingClientRect();
    this.tip.showAt(left + box.left + (cell.column + 1) * box.cellWide, top + box.top + cell.row * box.cellHigh, this.lines(cell));
  }

  turnTo(cell) {
    this.cursor = cell;
    this.mark();
    this.say();
  }

  choose(cell) {
    this.turnTo(cell);
    if (this.about.chooses) this.send("chosen", cell);
  }

  lines({ row, column }) {
    const { down, across, unit } = this.about;
    return [`${down} ${row}`, `${across} ${column}`, `${unit} ${plainNumber(this.values[row * this.columns + column], 6)}`];
  }

  say() {
    put(this.parts.sentence, this.cursor ? `${this.lines(this.cursor).join(", ")}.` : "");
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data, setTriggerValue));
}

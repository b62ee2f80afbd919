// Masks beside one another. What a cell stands for is said where it is pointed at, and where the arrow keys go; Python hears
// of nothing.
import { attribute, node, put, withView } from "../../../../transformer/frontend/dom.js";
import { Heatmap } from "../../../../transformer/frontend/heatmap.js";
import { Tip, tipIn } from "../../../../transformer/frontend/tip.js";
import { Predictions } from "./predictions.js";

const KEYS = "Arrow keys go from cell to cell.";
const LARGE = 64; // pixels of a cell of the first picture, at most
const STEPS = { 2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth" };

class View {
  constructor(parts) {
    this.parts = parts;
    this.figures = [];
    this.selected = this.pointed = null; // { panel, row, column }
    this.predictions = new Predictions(parts.predictions);
    this.tip = new Tip(tipIn(parts.root));
    this.tip.closesWithin(parts.root);
    new ResizeObserver(() => this.panels && this.draw()).observe(parts.panels);
  }

  update({ panels, predictions }) {
    const text = JSON.stringify(panels.map(({ labels }) => labels));
    if (text !== this.text) this.selected = null; // another text
    this.text = text;
    this.predicted = predictions;
    this.parts.predictions.hidden = !predictions;
    this.panels = panels.map(({ visible, ...panel }) => (
      { ...panel, values: Float32Array.from(visible, (cell) => (cell === "1" ? 1 : -Infinity)) }));
    while (this.figures.length > panels.length) this.figures.pop().figure.remove();
    while (this.figures.length < panels.length) this.figures.push(this.makeFigure(this.figures.length));
    if (!this.has(this.pointed)) this.point(null, null);
    this.draw();
    this.say();
  }

  makeFigure(panel) {
    const figure = node("figure", "", this.parts.panels);
    const title = node("figcaption", "", figure);
    const heatmap = new Heatmap(node("div", "drawn", figure), "", {
      point: (cell) => this.point(panel, cell),
      select: (cell) => this.select({ panel, ...cell }),
    });
    const words = node("p", "words", figure);
    return { figure, title, heatmap, words };
  }

  draw() {
    this.panels.forEach(({ title, words, labels, values }, at) => {
      const figure = this.figures[at];
      const { heatmap } = figure;
      put(figure.title, title);
      attribute(heatmap.marks, "aria-label", `${title}. ${words} ${KEYS}`);
      heatmap.refresh();
      heatmap.show({ values, rows: labels.length, columns: labels.length, rowLabels: labels, columnLabels: labels, kind: "visible", limit: 1,
        ...(this.predicted && at === 0 ? { widest: LARGE } : {}) }, null);
      put(figure.words, words);
    });
    put(this.parts.note, this.labelled());
    this.mark();
  }

  labelled() {
    const step = Math.max(...this.figures.flatMap(({ heatmap: { steps } }) => [steps.rows, steps.columns]));
    if (step === 1) return "";
    return `${STEPS[step] ? `Every ${STEPS[step]} token` : `One token in ${step}`} is labelled; pointing at a cell names both of its tokens.`;
  }

  point(panel, cell) {
    this.pointed = cell && { panel, ...cell };
    this.mark();
    if (!cell) return this.tip.hide();
    const { marks, box } = this.figures[panel].heatmap;
    const { left, top } = marks.getBoundingClientRect();
    this.tip.showAt(left + box.left + (cell.column + 1) * box.cellWide, top + box.top + cell.row * box.cellHigh, this.lines(this.pointed));
  }

  select(cell) {
    this.selected = cell;
    this.mark();
    this.say();
  }

  mark() {
    const within = (cell, panel) => (cell?.panel === panel ? cell : null);
    const row = this.row;
    const shown = (panel) => within(this.selected, panel) ?? (row !== null && panel === 0 ? { row, column: null } : null);
    this.figures.forEach(({ heatmap }, panel) => heatmap.mark(shown(panel), within(this.pointed, panel)));
  }

  /** The query whose predictions are shown, or null. */
  get row() {
    if (!this.predicted) return null;
    return this.selected?.panel === 0 ? this.selected.row : this.predicted.row;
  }

  has(cell) {
    const size = cell && this.panels[cell.panel]?.labels.length;
    return Boolean(size) && cell.row < size && cell.column < size;
  }

  lines({ panel, row, column }) {
    const { labels, offset, values } = this.panels[panel];
    const isVisible = values[row * labels.length + column] === 1;
    return [
      `query ${labels[row]} at position ${offset + row}`,
      `key ${labels[column]} at position ${offset + column}`,
      isVisible ? "visible" : "hidden",
    ];
  }

  say() {
    const { selected, row } = this;
    if (row !== null) this.predictions.show(this.panels[0], this.predicted, row);
    const next = selected && row !== null ? ` Likeliest next: ${this.predictions.said(this.predicted, row)}.` : "";
    put(this.parts.sentence, selected ? `${this.panels[selected.panel].title}: ${this.lines(selected).join(", ")}.${next}` : "");
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

// Draws masks side by side. A cell's meaning is told where it is pointed at, and where the arrow keys go.
import { PLAIN, colourAt } from "../colours.js";
import { attribute, node, partsOf, put } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { labellingNote } from "../axis_labels.js";
import { tipWithin } from "../tooltip.js";
import { Predictions } from "./predictions.js";

const KEYS = "Arrow keys go from cell to cell.";
const LARGE = 64; // pixels of a cell of the first picture, at most

const MARKUP = `
  <section class="masks" data-testid="masks" data-part="whole">
    <p class="key"><span data-part="levels"></span><i class="hidden"></i> hidden</p>
    <div class="parts">
      <div class="panels" data-part="panels"></div>
      <div class="predictions" data-part="predictions" hidden></div>
    </div>
    <p class="note" data-part="note"></p>
    <p class="sentence" data-part="sentence" role="status"></p>
  </section>`;

export class Masks {
  /** @param {{ root: HTMLElement }} parts */
  constructor({ root }) {
    root.innerHTML = MARKUP; // constant
    /** @type {Record<string, any>} */
    this.parts = { ...partsOf(root), root };
    const { parts } = this;
    this.figures = [];
    this.selected = this.pointed = null; // { panel, row, column }
    this.predictions = new Predictions(parts.predictions);
    this.tip = tipWithin(parts.whole);
    new ResizeObserver(() => this.panels && this.draw()).observe(parts.panels);
  }

  update({ panels, predictions }) {
    const text = JSON.stringify(panels.map(({ labels }) => labels));
    if (text !== this.text) this.selected = null; // another text
    this.text = text;
    this.predicted = predictions;
    this.parts.predictions.hidden = !predictions;
    this.panels = panels.map(withCells);
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
    const levels = this.panels[0].levels;
    this.parts.levels.replaceChildren(...levels.map((level, at) => {
      const entry = node("span", "");
      node("i", "", entry).style.background = `rgb(${colourAt(PLAIN, shade(at + 1, levels)).join(" ")})`;
      entry.append(` ${level}`);
      return entry;
    }));
    this.panels.forEach(({ title, words, labels, before, values }, at) => {
      const figure = this.figures[at];
      const { heatmap } = figure;
      put(figure.title, title);
      attribute(heatmap.marks, "aria-label", `${title}. ${words} ${KEYS}`);
      heatmap.refresh();
      heatmap.show({ values, rows: labels.length, columns: before.length + labels.length, rowLabels: labels, columnLabels: [...before, ...labels], kind: "visible", limit: 1, rowTitle: "query", columnTitle: "key",
        ...(this.predicted && at === 0 ? { widest: LARGE } : {}) }, null);
      put(figure.words, words);
    });
    const steps = this.figures.map(({ heatmap }) => heatmap.steps);
    put(this.parts.note, labellingNote({ rows: Math.max(...steps.map(({ rows }) => rows)), columns: Math.max(...steps.map(({ columns }) => columns)) }));
    this.mark();
  }

  point(panel, cell) {
    this.pointed = cell && { panel, ...cell };
    this.mark();
    if (!cell) return this.tip.hide();
    this.tip.showAt(...this.figures[panel].heatmap.cornerOf(cell), this.lines(this.pointed));
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
    const panel = cell && this.panels[cell.panel];
    return Boolean(panel) && cell.row < panel.labels.length && cell.column < panel.before.length + panel.labels.length;
  }

  lines({ panel, row, column }) {
    const { labels, before, offset, levels, cells } = this.panels[panel];
    const keys = [...before, ...labels];
    return [
      `query ${labels[row]} at position ${offset + row}`,
      `key ${keys[column]} at position ${offset - before.length + column}`,
      column < before.length ? "outside the context" : levels[cells[row * keys.length + column] - 1] ?? "hidden",
    ];
  }

  say() {
    const { selected, row } = this;
    if (row !== null) this.predictions.show(this.panels[0], this.predicted, row);
    const next = selected && row !== null ? ` Likeliest: ${this.predictions.inWords(this.predicted, row)}.` : "";
    put(this.parts.sentence, selected ? `${this.panels[selected.panel].title}: ${this.lines(selected).join(", ")}.${next}` : "");
  }
}

/** A panel as it was sent, with its cells, 0 where hidden, and their values in a heatmap. */
function withCells({ mask, ...panel }) {
  const size = panel.labels.length;
  const rows = panel.labels.map((_, row) => [...panel.before.map(() => 0), ...Array.from(mask.slice(row * size, (row + 1) * size), Number)]);
  const cells = rows.flat();
  return { ...panel, cells, values: Float32Array.from(cells, (cell) => (cell ? 2 * shade(cell, panel.levels) - 1 : -Infinity)) };
}

/** Where a level is on its colour scale, 0 to 1: the last one is darkest. */
function shade(level, levels) {
  return levels.length === 1 ? 1 : (level - 1) / (levels.length - 1);
}

// Draws a heatmap of tokens × tokens (or tokens × dimensions) with hover, selection and zoom. The picture is one
// canvas; what is selected or pointed at lies on a second one above it, so that pointing redraws only a few lines. A
// heatmap holds no state of the page: its owner gives it the selection, and is told of events.

import { SELECTED, gradient, scaleOf } from "./colours.js";
import { hatchBox, pageOf, pixelRatio, prepared } from "./canvas.js";
import { focusable, node, put } from "./dom.js";
import { drawCells } from "./heatmap_cells.js";
import { Gestures } from "./heatmap_gestures.js";
import { LINE, LONGEST, cut, fitColumns, fitRows, labelFont, scaled, writeColumn } from "./axis_labels.js";
import { plainNumber } from "./number_format.js";

/**
 * @typedef {{ row: number, column: number }} Cell
 * @typedef {{ row: number, column: number | null }} Selected a cell, or a whole row
 * @typedef {{ top: number, bottom: number, left: number, right: number }} Window its last row and column are left out
 */

/**
 * What can be carried along its row: a drag from a cell that can be taken carries, any other zooms.
 *
 * @typedef {object} Carry
 * @property {(cell: Cell) => boolean} canTake
 * @property {(cell: Cell) => boolean} canPut
 * @property {(cell: Cell) => void} take
 * @property {(from: Cell, to: Cell) => void} put
 */

/**
 * @typedef {object} HeatmapEvents
 * @property {(cell: Cell | null) => void} [point]
 * @property {(cell: Cell) => void} [select]
 * @property {(cell: Cell) => void} [step] what keys do, if it isn't to select
 * @property {(window: Window | null) => void} [zoom]
 * @property {Carry} [carry]
 */

/**
 * @typedef {object} HeatmapData
 * @property {Float64Array | null} values flat, −∞ where hidden; null, like `limit`, while they are on their way
 * @property {number} rows
 * @property {number} columns
 * @property {string[] | null} rowLabels
 * @property {string[] | null} columnLabels
 * @property {string} [rowTitle] "term: what it means", or the term alone where there is no room
 * @property {string} [columnTitle]
 * @property {"weights" | "scores" | "visible"} kind from 0 to `limit`; from −limit to limit; one colour
 * @property {number | null} limit
 * @property {boolean} [cut] whether some numbers are beyond the limit, in its colour
 * @property {number} [pitch] pixels of a row
 * @property {number} [tallest] pixels of the picture
 * @property {number} [gutter] pixels left of the cells, which then take all the width
 * @property {number} [widest] pixels of a cell
 * @property {(context: CanvasRenderingContext2D) => void} [above] draws over the cells
 */

const LARGEST_CELL = 40; // pixels
const SMALLEST_SIDE = 120; // pixels of the picture
const TITLE = 15; // pixels of an axis's title, in usual type
const HALF_LINE = 7; // pixels above the cells, for the label of a thin first row, in usual type

export class Heatmap {
  /**
   * @param {HTMLElement} parent
   * @param {string} name said to screen readers
   * @param {HeatmapEvents} events
   */
  constructor(parent, name, events) {
    this.events = events;
    this.buffer = document.createElement("canvas"); // a pixel for each cell that is drawn
    this.plot = node("div", "plot", parent);
    this.picture = node("canvas", "picture", this.plot);
    this.marks = node("canvas", "marks", this.plot);
    focusable(this.marks, "heatmap", name);
    this.legend = node("div", "legend", parent);
    this.low = node("span", "", this.legend);
    this.ramp = node("i", "ramp", this.legend);
    this.high = node("span", "", this.legend);
    this.gestures = new Gestures(this);
  }

  /**
   * @param {HeatmapData} data
   * @param {Window | null} [window] what of it is drawn; null for all
   */
  show(data, window) {
    this.data = data;
    this.window = window ?? { top: 0, bottom: data.rows, left: 0, right: data.columns };
    const { limit, kind, cut } = data;
    put(this.low, limit === null ? "–" : kind === "weights" ? "0" : `${cut ? "≤ " : ""}${plainNumber(-limit, 3)}`);
    put(this.high, limit === null ? "–" : `${cut ? "≥ " : ""}${plainNumber(limit, 3)}`);
    this.draw();
  }

  /**
   * Outline the selected cell with its row and column, and the cell that is pointed at; null for none.
   *
   * @param {Selected | null} selected
   * @param {Cell | null} pointed
   */
  mark(selected, pointed) {
    this.selected = selected;
    this.pointed = pointed;
    this.drawMarks();
  }

  /** Every so many-th row and column has a label. */
  get steps() {
    return { rows: this.rowFit?.step ?? 1, columns: this.columnFit?.step ?? 1 };
  }

  /** Where the top right corner of a cell is in the window. @param {Cell} cell @returns {[number, number]} */
  cornerOf({ row, column }) {
    const { plotArea } = this;
    const { left, top } = this.marks.getBoundingClientRect();
    return [left + plotArea.left + (column + 1) * plotArea.cellWidth, top + plotArea.top + row * plotArea.cellHeight];
  }

  /** The page has another size or other colours: read them anew when something is drawn. */
  refresh() {
    this.page = null;
  }

  draw() {
    if (!this.page?.width) this.page = pageOf(this.plot);
    if (!this.page.width || !this.data) return;
    this.layOut(this.page.width);
    const { isDark } = this.page;
    const scale = scaleOf(this.data.kind, isDark);
    if (this.scale !== scale) this.ramp.style.background = gradient(scale);
    this.scale = scale;
    const context = prepared(this.picture, this.page.width, this.height);
    const { left, top, wide, high } = this.plotArea;
    context.fillStyle = this.page.hidden;
    context.fillRect(left, top, wide, high);
    if (this.data.values) {
      hatchBox(context, this.plotArea, this.page.hatch);
      context.imageSmoothingEnabled = false;
      const ratio = pixelRatio();
      this.pooled = drawCells(this.buffer, this.data, this.window, { wide: wide * ratio, high: high * ratio }, isDark);
      context.drawImage(this.buffer, left, top, wide, high);
    }
    this.drawLabels(context);
    this.drawTitles(context);
    this.data.above?.(context);
    this.drawMarks();
  }

  /** Pixels that the axes' titles take, left of the rows' labels and below the columns'. */
  get titled() {
    const { rowTitle, columnTitle } = this.data;
    return { beside: rowTitle ? scaled(TITLE) : 0, under: columnTitle ? scaled(TITLE) : 0 };
  }

  // The picture's height depends on the whole matrix, not on what is zoomed into: nothing below it moves.
  layOut(width) {
    const { rows, columns } = this.data;
    const { window } = this;
    const context = this.picture.getContext("2d");
    const rowWidths = widthsOf(this.data.rowLabels, LONGEST.rows, context);
    const columnWidths = widthsOf(this.data.columnLabels, LONGEST.columns, context);
    const { beside, under } = this.titled;
    const left = this.data.gutter ?? Math.min(fitRows(rowWidths, 1).width + beside, width / 2.2);
    const wide = Math.min(width - left - 2, this.data.gutter ? Infinity : scaled(this.data.widest ?? LARGEST_CELL) * columns);
    const pitch = this.data.pitch ?? wide / columns;
    const high = Math.max(Math.min(pitch * rows, this.data.tallest ?? 1.35 * wide), this.data.pitch ? 0 : Math.min(SMALLEST_SIDE, wide));
    this.plotArea = { left, top: scaled(HALF_LINE), wide, high, cellWidth: wide / (window.right - window.left), cellHeight: high / (window.bottom - window.top) };
    this.rowFit = fitRows(rowWidths, this.plotArea.cellHeight);
    this.columnFit = fitColumns(columnWidths.slice(window.left, window.right), this.plotArea.cellWidth);
    const below = this.data.columnLabels ? fitColumns(columnWidths, wide / columns) : { height: 2, turned: false };
    // Room for upright labels is kept while a zoom makes it unnecessary, for the same reason.
    this.height = high + Math.max(below.height, this.data.columnLabels ? this.columnFit.height : 0) + under + scaled(HALF_LINE) + 2;
  }

  /** Where labels of columns are written. */
  get columnTop() {
    return this.plotArea.top + this.plotArea.high + (this.columnFit.turned ? 4 : scaled(9));
  }

  drawLabels(context) {
    const { rowLabels, columnLabels } = this.data;
    const { plotArea, window, rowFit, columnFit } = this;
    context.font = labelFont();
    context.fillStyle = this.page.ink;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let row = window.top; rowLabels && row < window.bottom; row += rowFit.step) {
      const y = plotArea.top + (row - window.top + 0.5) * plotArea.cellHeight;
      context.fillText(cut(rowLabels[row], LONGEST.rows), plotArea.left - 4, y, plotArea.left - 4 - this.titled.beside);
    }
    for (let column = window.left; columnLabels && column < window.right; column += columnFit.step) {
      const x = plotArea.left + (column - window.left + 0.5) * plotArea.cellWidth;
      writeColumn(context, cut(columnLabels[column], LONGEST.columns), x, this.columnTop, columnFit.turned);
    }
  }

  drawTitles(context) {
    const { plotArea, height, data: { rowTitle, columnTitle } } = this;
    context.font = labelFont();
    context.fillStyle = this.page.muted;
    context.textAlign = "center";
    const fitting = (title, room) => (context.measureText(title).width <= room ? title : title.split(":")[0]);
    if (columnTitle) context.fillText(fitting(columnTitle, plotArea.wide), plotArea.left + plotArea.wide / 2, height - scaled(TITLE) / 2);
    if (!rowTitle) return;
    context.save();
    context.translate(scaled(TITLE) / 2, plotArea.top + plotArea.high / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(fitting(rowTitle, plotArea.high), 0, 0);
    context.restore();
  }

  drawMarks() {
    if (!this.plotArea || !this.page) return;
    const context = prepared(this.marks, this.page.width, this.height);
    const { plotArea, window } = this;
    this.drawSelectedLabels(context);
    context.save();
    context.beginPath();
    context.rect(plotArea.left - 2, plotArea.top - 2, plotArea.wide + 4, plotArea.high + 4);
    context.clip();
    const outline = (row, column, rows, columns, colour, thickness) => {
      const x = plotArea.left + (column - window.left) * plotArea.cellWidth;
      const y = plotArea.top + (row - window.top) * plotArea.cellHeight;
      for (const [style, width] of [[this.page.paper, thickness + 2], [colour, thickness]]) {
        context.strokeStyle = style;
        context.lineWidth = width;
        context.strokeRect(x, y, columns * plotArea.cellWidth, rows * plotArea.cellHeight);
      }
    };
    if (this.selected) {
      const { row, column } = this.selected;
      outline(row, window.left, 1, window.right - window.left, SELECTED, column === null ? 2 : 1);
      if (column !== null) {
        outline(window.top, column, window.bottom - window.top, 1, SELECTED, 1);
        outline(row, column, 1, 1, SELECTED, 2.5);
      }
    }
    if (this.pointed) outline(this.pointed.row, this.pointed.column, 1, 1, this.page.ink, 1.5);
    context.restore();
    const { drag } = this.gestures;
    if (drag?.carried && drag.moved) this.drawCarried(context, drag);
    else if (drag?.moved) {
      const { from, to } = drag;
      context.fillStyle = "rgb(0 114 178 / 0.25)";
      context.fillRect(from.x, from.y, to.x - from.x, to.y - from.y);
    }
  }

  // The labels of what is selected are always there: neighbours that they would touch are covered.
  drawSelectedLabels(context) {
    const { plotArea, window, rowFit, columnFit, data: { rowLabels, columnLabels } } = this;
    const { row, column } = this.selected ?? {};
    const [line, half] = [scaled(LINE), scaled(LINE) / 2];
    const { beside, under } = this.titled;
    context.font = `bold ${labelFont()}`;
    context.textBaseline = "middle";
    if (rowLabels && row >= window.top && row < window.bottom) {
      const y = plotArea.top + (row - window.top + 0.5) * plotArea.cellHeight;
      this.cover(context, nearest(row, window.top, rowFit.step, plotArea.cellHeight, line), (at) => [beside, plotArea.top + (at - window.top + 0.5) * plotArea.cellHeight - half, plotArea.left - 2 - beside, line]);
      context.textAlign = "right";
      context.fillText(cut(rowLabels[row], LONGEST.rows), plotArea.left - 4, y, plotArea.left - 4 - this.titled.beside);
    }
    if (columnLabels && column !== null && column >= window.left && column < window.right) {
      const x = plotArea.left + (column - window.left + 0.5) * plotArea.cellWidth;
      const label = cut(columnLabels[column], LONGEST.columns);
      const width = columnFit.turned ? line : Math.max(context.measureText(label).width, columnFit.step * plotArea.cellWidth - 1);
      this.cover(context, nearest(column, window.left, columnFit.step, plotArea.cellWidth, width), (at) =>
        [plotArea.left + (at - window.left + 0.5) * plotArea.cellWidth - width / 2, plotArea.top + plotArea.high + 3, width, this.height - plotArea.top - plotArea.high - 3 - under]);
      writeColumn(context, label, x, this.columnTop, columnFit.turned);
    }
  }

  cover(context, cells, boxOf) {
    context.fillStyle = this.page.paper;
    for (const at of cells) context.fillRect(...boxOf(at));
    context.fillStyle = this.page.ink;
  }

  // Where what is carried comes from, and where it would be put.
  drawCarried(context, { carried, target }) {
    const { plotArea, window } = this;
    const [x, y] = [plotArea.left + (target.column - window.left) * plotArea.cellWidth, plotArea.top + (target.row - window.top) * plotArea.cellHeight];
    const [start, end, middle] = [plotArea.left + (carried.column - window.left + 0.5) * plotArea.cellWidth, x + plotArea.cellWidth / 2, y + plotArea.cellHeight / 2];
    context.strokeStyle = context.fillStyle = SELECTED;
    context.lineWidth = 2.5;
    context.beginPath();
    context.moveTo(start, middle);
    context.lineTo(end, middle);
    context.stroke();
    context.globalAlpha = 0.6;
    context.fillRect(x, y, plotArea.cellWidth, plotArea.cellHeight);
    context.globalAlpha = 1;
  }

  /** What is carried, { from, to }, or null. */
  get carrying() {
    const { drag } = this.gestures;
    return drag?.carried && drag.moved ? { from: drag.carried, to: drag.target } : null;
  }

  /** The cell nearest to a point. @returns {Cell} */
  cellAt({ x, y }) {
    const { plotArea, window } = this;
    const clamp = (value, low, high) => Math.min(Math.max(value, low), high - 1);
    return {
      row: clamp(window.top + Math.floor((y - plotArea.top) / plotArea.cellHeight), window.top, window.bottom),
      column: clamp(window.left + Math.floor((x - plotArea.left) / plotArea.cellWidth), window.left, window.right),
    };
  }
}

const measured = { [LONGEST.rows]: new WeakMap(), [LONGEST.columns]: new WeakMap() };

/** Pixels that each label takes; measured once for a list of labels in one font. */
function widthsOf(labels, longest, context) {
  if (!labels) return [];
  const font = labelFont();
  if (measured[longest].get(labels)?.font !== font) {
    context.font = font;
    measured[longest].set(labels, { font, widths: labels.map((label) => context.measureText(cut(label, longest)).width) });
  }
  return measured[longest].get(labels).widths;
}

/** The indices whose labels, every so many-th from the first on, that of one would touch; and that one. */
function nearest(at, first, step, pitch, size) {
  const before = first + Math.floor((at - first) / step) * step;
  return [at, before, before + step].filter((edge) => Math.abs(edge - at) * pitch < size);
}

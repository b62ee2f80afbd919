// Renders the cells of a heatmap as an image with one pixel for each cell, which is then scaled up.

import { pixelsOf } from "./colours.js";
/** @import { HeatmapData, Window } from "./heatmap.js" */

const INVALID = 0xff005ed5; // vermilion, as little-endian RGBA: a visible number that isn't finite
const LEVELS = 254; // of a colour scale; the byte above stands for what is hidden

/**
 * Draw the cells of a window into a canvas, which gets their size, at most `wide` × `high` pixels. Returns whether there are
 * more cells than pixels: a pixel then has the one that stands out most.
 *
 * @param {HTMLCanvasElement} buffer
 * @param {HeatmapData} data
 * @param {Window} window
 * @param {{ wide: number, high: number }} room
 * @param {boolean} isDark whether the page is
 */
export function drawCells(buffer, { values, columns, kind, limit }, window, { wide, high }, isDark) {
  const across = Math.max(1, Math.min(window.right - window.left, Math.round(wide)));
  const down = Math.max(1, Math.min(window.bottom - window.top, Math.round(high)));
  const isPooled = across < window.right - window.left || down < window.bottom - window.top;
  const image = new ImageData(across, down);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = pixelsOf(kind, isDark);
  const lowest = kind === "weights" ? 0 : -limit;
  const scale = LEVELS / (limit - lowest || 1);
  const rowEdges = edges(window.top, window.bottom, down);
  const columnEdges = edges(window.left, window.right, across);
  for (let y = 0; y < down; y++) {
    for (let x = 0; x < across; x++) {
      let value = values[rowEdges[y] * columns + columnEdges[x]];
      if (isPooled) value = mostOutstanding(values, columns, rowEdges[y], rowEdges[y + 1], columnEdges[x], columnEdges[x + 1]);
      if (value === -Infinity) continue; // hidden: transparent
      const level = Math.round((value - lowest) * scale);
      pixels[y * across + x] = level >= 0 && level <= LEVELS ? colours[level] : INVALID;
    }
  }
  if (buffer.width !== across) buffer.width = across;
  if (buffer.height !== down) buffer.height = down;
  buffer.getContext("2d").putImageData(image, 0, 0);
  return isPooled;
}

/** Where each of `count` pixels begins among the cells from one to another, and where the last ends. */
function edges(from, to, count) {
  return Int32Array.from({ length: count + 1 }, (_, at) => from + Math.floor((at * (to - from)) / count));
}

function mostOutstanding(values, columns, top, bottom, left, right) {
  let strongest = -Infinity;
  for (let row = top; row < bottom; row++) {
    for (let column = left; column < right; column++) {
      const value = values[row * columns + column];
      if (strongest === -Infinity || Math.abs(value) > Math.abs(strongest) || Number.isNaN(value)) strongest = value;
    }
  }
  return strongest;
}

// Tests that the colour scales are those of the figures, and what is computed from them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { colourAt, DIVERGING, gradient, HIDDEN, lookupTable, scaleOf, SEQUENTIAL } from "../../transformer/frontend/colours.js";
import { drawCells } from "../../transformer/frontend/heatmap_cells.js";

const palette = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "palette.json"), "utf-8"));

test("the scales are those of the figures", () => {
  assert.deepEqual(SEQUENTIAL, palette.sequential);
  assert.deepEqual(DIVERGING, palette.diverging);
});

test("on a dark page a score of zero is dark, and the largest are light; weights stay as they are", () => {
  const [lowest, zero, highest] = [0, 0.5, 1].map((at) => Math.max(...colourAt(scaleOf("scores", true), at)));
  assert.ok(zero < 32 && lowest > 200 && highest > 200);
  assert.equal(scaleOf("scores", false), DIVERGING);
  assert.equal(scaleOf("weights", true), SEQUENTIAL);
});

test("a colour between two stops is between theirs", () => {
  assert.deepEqual(colourAt([[0, "#000000"], [0.5, "#ff0000"], [1, "#ff00c8"]], 0.75), [255, 0, 100]);
});

test("a byte's word is the pixel that ImageData has, and hidden is transparent", () => {
  for (const stops of [SEQUENTIAL, DIVERGING]) {
    const words = lookupTable(stops);
    assert.equal(words.length, 256);
    const pixel = (value) => [...new Uint8Array(words.buffer, 4 * value, 4)];
    assert.deepEqual(pixel(0), [...colourAt(stops, 0), 255]);
    assert.deepEqual(pixel(127), [...colourAt(stops, 0.5), 255]);
    assert.deepEqual(pixel(254), [...colourAt(stops, 1), 255]);
    assert.deepEqual(pixel(HIDDEN), [0, 0, 0, 0]);
  }
});

test("a gradient has every stop at its place", () => {
  assert.equal(gradient([[0, "#000000"], [0.25, "#ff0000"], [1, "#ffffff"]]), "linear-gradient(to right, #000000 0%, #ff0000 25%, #ffffff 100%)");
});

test("each cell of a window has the colour of its number, to the last row and column", () => {
  const images = [];
  /** @type {any} */ (globalThis).ImageData = class { constructor(wide, high) { this.data = new Uint8ClampedArray(4 * wide * high); } };
  const canvas = /** @type {any} */ ({ width: 3, height: 2, getContext: () => ({ putImageData: (image) => images.push(new Uint32Array(image.data.buffer)) }) });
  const data = /** @type {any} */ ({ values: Float32Array.of(0, 0.5, 1, -Infinity, 1, 0), columns: 3, kind: "weights", limit: 1 });
  drawCells(canvas, data, /** @type {any} */ ({ left: 0, right: 3, top: 0, bottom: 2 }), { wide: 30, high: 20 }, false);
  const scale = lookupTable(SEQUENTIAL);
  assert.deepEqual([...images[0]], [scale[0], scale[127], scale[254], 0, scale[254], scale[0]]);
});

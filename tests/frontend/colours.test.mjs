// Tests that the colour scales are those of the figures, and what is computed from them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { colourAt, DIVERGING, gradient, HIDDEN, lookupTable, SEQUENTIAL } from "../../transformer/frontend/colours.js";

const palette = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "palette.json"), "utf-8"));

test("the scales are those of the figures", () => {
  assert.deepEqual(SEQUENTIAL, palette.sequential);
  assert.deepEqual(DIVERGING, palette.diverging);
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

// Tests the numbers over a heatmap's cells: as fine as they fit, and readable on every colour.
import assert from "node:assert/strict";
import { test } from "node:test";
import { colourAt, scaleOf } from "../../transformer/frontend/colours.js";
import { decimalsFor, inkOn, writeNumbers } from "../../transformer/frontend/cell_numbers.js";

const SIGN = 7; // pixels

function written(numbers, limit, cellWidth, cellHeight = 28) {
  const texts = [];
  const context = { measureText: () => ({ width: SIGN }), strokeText: () => {}, fillText: (text) => texts.push(text) };
  const values = numbers.map((number) => (number === -Infinity ? number : Math.min(Math.max(number, -limit), limit)));
  const plotArea = { left: 0, top: 0, cellWidth, cellHeight };
  writeNumbers(context, { data: { values, columns: 2, limit }, plotArea, page: { isDark: false } }, numbers);
  return texts;
}

test("numbers have three digits of the largest, or fewer where a cell is narrow, or none", () => {
  assert.deepEqual(written([0.1234, -0.5, 0.00001, 12], 0.5, 88), ["+0.123", "−0.500", "0", "+12.000"]);
  assert.deepEqual(written([0.1234, -0.5, 0.00001, 1], 0.5, 42), ["+0.12", "−0.50", "0", "+1.00"]);
  assert.deepEqual(written([0.1234, -0.5], 0.5, 20), []);
  assert.deepEqual(written([0.1234, -0.5], 0.5, 88, 10), []);
});

test("shares are never rounded to 0 or 1", () => {
  assert.deepEqual(written([0.64, 0.3], 1, 34), ["+0.6", "+0.3"]);
  assert.deepEqual(written([0.64, 0.3], 1, 24), []);
  assert.deepEqual(written([64, 3], 64, 28), ["+64", "+3"]);
});

test("where there is no number none is written", () => {
  assert.deepEqual(written([-Infinity, 1], 1, 88), ["", "+1.00"]);
});

test("decimals are neither below none nor endless", () => {
  assert.equal(decimalsFor(12345, 3), 0);
  assert.equal(decimalsFor(1e-30, 3), 5);
});

test("ink has a contrast of 4.5 on every colour of a scale, on light and dark pages", () => {
  const luminance = (bytes) => {
    const [red, green, blue] = bytes.map((byte) => byte / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const colours = [false, true].flatMap((isDark) => Array.from({ length: 255 }, (_, step) => colourAt(scaleOf("scores", isDark), step / 254)));
  for (const colour of colours) {
    const [paper, ink] = [luminance(colour), inkOn(colour) === "#ffffff" ? 1 : 0];
    assert.ok((Math.max(paper, ink) + 0.05) / (Math.min(paper, ink) + 0.05) >= 4.5);
  }
});

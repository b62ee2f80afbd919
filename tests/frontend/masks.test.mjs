// Tests which cells masks show as visible, in which layers, and what is said of predictions under two of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { causalPanel, encoderPanels, groupsOf, paddingPanel } from "../../transformer/frontend/masks/panels.js";
import { underCausalMask, withoutMask } from "../../transformer/frontend/masks/readings.js";

const tokens = { labels: [..."abab"], offset: 0 };
const causal = (/** @type {number[]} */ windows) => causalPanel(tokens, { windows, length: 4, before: [], outside: 0, context: 8, isTranslator: false });

test("a token sees itself and what came before it, in a layer with a window only what is near", () => {
  const { mask, levels, words } = causal([0]);
  assert.equal(mask, "1000" + "1100" + "1110" + "1111");
  assert.deepEqual(levels, ["visible"]);
  assert.match(words, /in its one layer and every head\. Of 16 cells here, 6 are hidden\.$/);
  const windowed = causal([3, 0, 2]);
  assert.equal(windowed.mask, "3000" + "3300" + "2330" + "1233");
  assert.deepEqual(windowed.levels, ["visible in layer 1", "visible in layers 0, 1", "visible in every layer"]);
  assert.equal(windowed.title, "Causal mask with sliding windows");
  assert.match(windowed.words, /in layer 2 the last 2, in layer 0 the last 3 tokens are visible\. Of 16 cells here, 6 are hidden in every layer\.$/);
  assert.deepEqual(groupsOf([4, 9], 4), [{ size: 0, layers: [0, 1] }]); // no narrower than the text
});

test("an encoder's window reaches to both sides; padding is hidden wherever it stands", () => {
  const [own, decoders] = encoderPanels(tokens, { windows: [2, 0], length: 4 });
  assert.equal(own.mask, "2211" + "2221" + "1222" + "1122");
  assert.equal(decoders.mask, "2000" + "2200" + "1220" + "1122");
  assert.match(own.words, /further away: in layer 0 than 1 token\./);
  const { labels, mask } = paddingPanel({ ids: [5, 9], labels: ["a", "b"], offset: 0 }, 9, 1);
  assert.deepEqual([labels, mask], [["a", "∅", "∅"], "100".repeat(3)]);
});

/** A distribution over two tokens. */
const of = (/** @type {number} */ first) => new Map([[0, Math.log(first)], [1, Math.log(1 - first)]]);
const label = (/** @type {number} */ id) => "ab"[id];

test("the row that loses most is shown first, or the middle one; the last token's change is explained", () => {
  const own = [of(0.5), of(0.9), of(0.5)];
  const shown = withoutMask({ own, other: [of(0.49), of(0.2), of(0.6)], right: [0, 0, null], label }, { windows: [0, 0], length: 5, first: 2 });
  assert.deepEqual(shown.rows[1].map((list) => list.map(([name, share]) => `${name} ${share.toFixed(2)}`)), [["a 0.90", "b 0.10"], ["b 0.80", "a 0.20"]]);
  assert.deepEqual([shown.row, shown.right], [1, [[0, 1], [0, 1], [null, null]]]);
  assert.match(shown.sees[1], /^2 of 3 keys visible\. This row is shown first because the token that came next/);
  assert.match(shown.words, /from the second layer on .* is 10 percentage points\.$/);
  const same = withoutMask({ own, other: own, right: [0, 0, null], label }, { windows: [0], length: 3, first: 0 });
  assert.match(same.sees[1], /because it is the middle one/);
  assert.match(same.words, /no other layer: no probability changes here\.$/);
  const masked = underCausalMask({ own, other: own, right: [0, null, 1], label }, { windows: [0], row: 1 });
  assert.deepEqual(masked.sees.map((words) => /✓/.test(words)), [true, false, true]);
  assert.match(masked.sees[1], /because it is the first mask/);
  assert.match(masked.words, /This model has no other\.$/);
});

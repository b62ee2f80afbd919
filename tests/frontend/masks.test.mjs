// Tests which cells the mask of a page without a server shows as visible, and in which layers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MasksView } from "../../transformer/frontend/masks/view.js";

async function panel(windows) {
  let shown;
  const logits = { shape: [4, 2], data: new Float32Array(8) };
  const api = { recording: async () => ({ tensors: { logits } }), end() {} };
  const view = Object.assign(Object.create(MasksView.prototype), { host: { apiOf: () => api }, masks: { update: (data) => (shown = data.panels[0]) } });
  await view.begin(null, { requests: [{}, {}], tokens: [0, 1, 0, 1], labels: [..."abab"], offset: 0, kinds: [["a"], ["b"]], windows });
  return shown;
}

test("a token sees itself and what came before it, in a layer with a window only what is near", async () => {
  const { mask, levels, words } = await panel([0]);
  assert.equal(mask, "1000" + "1100" + "1110" + "1111");
  assert.deepEqual(levels, ["visible"]);
  assert.match(words, /Of 16 cells here, 6 are hidden\./);
  const windowed = await panel([3, 0, 2]);
  assert.equal(windowed.mask, "3000" + "3300" + "2330" + "1233");
  assert.deepEqual(windowed.levels, ["visible in layer 1", "visible in layers 0, 1", "visible in every layer"]);
});

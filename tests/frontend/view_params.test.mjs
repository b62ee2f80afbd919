// Tests that a text's window begins where the engine says, and that settings are read from an address within their
// limits.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PageState } from "../../transformer/frontend/page/page_state.js";
import { selectionFrom, paramsFrom, toLogit, windowStart } from "../../transformer/frontend/generation/view_params.js";

const ABOUT = {
  choices: { layers: 2, heads: 3, attentions: [["cross", "at the source"], ["decoder", "at its own words"]], paces: [["slow"], ["fast"]] },
  attention: "cross", opening: { layer: 1, head: 2 },
};

test("a window begins where the engine's does", () => {
  const windows = JSON.parse(readFileSync(`${process.env.HEADSUP_FIXTURES}/windows.json`, "utf-8"));
  assert.ok(windows.length > 4000);
  for (const [length, context, start] of windows) assert.equal(windowStart(length, context), start, `${length} of ${context}`);
});

test("what an address says of settings is taken, as far as it can be meant", () => {
  const chosen = (search) => selectionFrom(new PageState(search), ABOUT);
  assert.deepEqual(chosen(""), { temperature: 0.8, top_k: 0, top_p: 1, seed: 1, tokens: 200, pace: "fast", attention: "cross", layer: 1, head: 2 });
  assert.deepEqual(chosen("temperature=0&top_k=7&top_p=0.5&seed=9&tokens=3&pace=slow&attention=decoder&layer=0&head=1"),
    { temperature: 0, top_k: 7, top_p: 0.5, seed: 9, tokens: 3, pace: "slow", attention: "decoder", layer: 0, head: 1 });
  assert.deepEqual(chosen("temperature=x&top_k=-1&top_p=0&seed=1e99&tokens=0&pace=never&attention=self&layer=99&head=99"), chosen("layer=1&head=2"));
});

test("what is as at first is left out of the address", () => {
  assert.deepEqual(paramsFrom({ temperature: 0.8, seed: 5, pace: "fast" }), { temperature: null, seed: 5, pace: null });
});

test("a logit is computed one place before its token, unless that isn't read any more", () => {
  assert.deepEqual(toLogit(11, 7, 11, 8), { inside: "logits", moment: null, place: 10, cell: "6,7" });
  assert.equal(toLogit(4, 7, 11, 8), null);
});

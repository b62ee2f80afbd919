// Tests which numbers of a pass a change sets, and the codes of changes.
import assert from "node:assert/strict";
import { test } from "node:test";

import { OverwrittenValues } from "../../transformer/frontend/overwritten_values.js";
import { codeOf } from "../../transformer/frontend/intervention_codes.js";

const place = (point, head, position, words, rest = {}) => ({ point, head, position, words, rule: "", weighed: null, ...rest });
const changed = new OverwrittenValues([
  place("blocks.0.attn.hook_z", 1, null, "head 1"), place("blocks.0.attn.hook_z", null, 3, "place 3"),
  place("blocks.0.attn.hook_mask", null, null, "no mask", { rule: "mask" }),
  place("blocks.0.attn.hook_pattern", 0, 1, "by hand", { weighed: [0, 0.25, true] }),
  place("blocks.0.attn.hook_pattern", 0, 2, "by hand too", { weighed: [2, 0.5, false] }),
  place("blocks.0.attn.hook_pattern", 0, 9, "beyond the text", { weighed: [0, 1, true] }),
]);

test("a number is set where head and position are", () => {
  assert.deepEqual(changed.setBy("blocks.0.attn.hook_z", 1, 0), ["head 1"]);
  assert.deepEqual(changed.setBy("blocks.0.attn.hook_z", 0, 3), ["place 3"]);
  assert.deepEqual(changed.setBy("blocks.0.attn.hook_z", 0, 0), []);
  assert.deepEqual(changed.setBy("blocks.0.attn.hook_z"), ["head 1", "place 3"]);
  assert.deepEqual(changed.setBy("blocks.1.attn.hook_z", 1, 3), []);
});

test("an attention goes without its own rules alone", () => {
  assert.deepEqual(changed.rules("blocks.0.attn"), ["mask"]);
  assert.deepEqual(changed.rules("blocks.1.attn"), []);
  assert.deepEqual(new OverwrittenValues().rules("blocks.0.attn"), []);
});

test("a head is ablated where its output is set to zero at every position", () => {
  const ablated = new OverwrittenValues([
    place("blocks.0.attn.hook_z", 1, null, "", { ablated: true }), place("blocks.1.attn.hook_result", null, null, "", { ablated: true }),
    place("blocks.2.attn.hook_z", 0, 3, "", { ablated: true }), place("blocks.2.attn.hook_q", 0, null, "", { ablated: true }),
  ]);
  const heads = [0, 1, 2].map((layer) => [0, 1].map((head) => ablated.isAblated(`blocks.${layer}.attn`, head)));
  assert.deepEqual(heads, [[false, true], [true, true], [false, false]]);
  assert.equal(changed.isAblated("blocks.0.attn", 1), false); // set, but not to zero
});

test("weights are set as the model sets them: the others share the rest, or stay", () => {
  const weights = Float64Array.from([1, 0, 0, 0.5, 0.25, 0.25, 0.2, 0.3, 0.5]);
  const found = changed.weigh("blocks.0.attn", 0, weights.slice(), 3);
  assert.deepEqual([...found], [1, 0, 0, 0.25, 0.375, 0.375, 0.2, 0.3, 0.5]);
  assert.deepEqual([...changed.weigh("blocks.0.attn", 1, weights.slice(), 3)], [...weights]);
  const alone = new OverwrittenValues([place("a.hook_pattern", 0, 0, "", { weighed: [0, 0.5, true] })]);
  assert.deepEqual([...alone.weigh("a", 0, Float64Array.from([1, 0]), 2)], [0.5, 0]); // nothing to share it with
});

test("a code has a place for each field", () => {
  assert.equal(codeOf("weigh", { point: "a.hook_pattern", head: 1, query: 2, key: 0, weight: 0.5, renormalised: true }), "weigh~a.hook_pattern~1~2~0~0.5~1");
  assert.equal(codeOf("scale", { point: "a", position: 3, factor: 2 }), "scale~a~~3~2.0");
});

// Tests which numbers of a pass an intervention sets, and that codes say the same here as in Python (tests/engine_passes.py).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { problemOf } from "../../transformer/frontend/intervention_checks.js";
import { OverwrittenValues } from "../../transformer/frontend/overwritten_values.js";
import { KINDS, codeOf, inWords, parsed } from "../../transformer/frontend/intervention_codes.js";

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

test("a code, its words, and what a model can't do are those of Python", () => {
  const models = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "engine", "interventions.json"), "utf-8"));
  for (const { said, ...model } of models) {
    for (const { code, words, problem } of said) {
      const { kind, values } = parsed(code);
      assert.deepEqual([codeOf(kind, values), inWords(code), problemOf(code, model)], [code, words, problem]);
    }
  }
});

test("what is no code is said, and said as it is", () => {
  const refused = {
    "melt~hook_embed": `there is no change called “melt”; it can be ${Object.keys(KINDS).join(", ")}`,
    "mean~hook_embed": "mean takes 3 values, and 1 are given",
    "scale~hook_embed~~~much": "factor can't be “much”",
    "scale~hook_embed~1.5~~0": "head can't be “1.5”",
    "weigh~a~~0~0~1~1": "head can't be “”",
    "weigh~a~0~0~0~1~2": "renormalised can't be “2”",
    "from~hook_embed~~~1.-2~": "tokens can't be “1.-2”",
    "without~constructor~": "there is no rule “constructor”; it can be mask, later, windows, scale, positions, norm",
  };
  for (const [code, problem] of Object.entries(refused)) {
    assert.equal(problemOf(code, { config: { n_heads: 1, d_model: 1 }, equations: [] }), problem);
    assert.equal(inWords(code), code.replace(/^without~(.*)~/, "without $1"));
  }
});

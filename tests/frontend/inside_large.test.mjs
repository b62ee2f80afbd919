// Tests that a softmax over a large vocabulary is drawn as its largest terms and one for all others, and still ends in
// the recorded number.
import assert from "node:assert/strict";
import { test } from "node:test";
import { InsidePass } from "../../transformer/frontend/inside/pass.js";

const flat = (data) => ({ shape: [data.length], data });
const VOCABULARY = 49_152;
const DIMS = ["pos", "vocab"];
const LOGITS = Float32Array.from({ length: VOCABULARY }, (_, at) => 6 * Math.sin(at * at));
const EXPONENTIALS = Float64Array.from(LOGITS, Math.exp);
const SUM = EXPONENTIALS.reduce((sum, each) => sum + each, 0);
const ORDER = [...LOGITS.keys()].sort((a, b) => LOGITS[b] - LOGITS[a] || a - b);

function pass(count = VOCABULARY) {
  const entries = ["logits", "probabilities"].map((name) => ({ name, kind: "output", dims: DIMS, sizes: [1, count], meaning: "", formula: "" }));
  const equation = { name: "probabilities", operation: "softmax", dims: DIMS, operands: { x: [{ name: "logits", dims: DIMS, cells: ["pos", ":"] }] } };
  const metadata = {
    id: "x", title: "x", config: { pad_token_id: null }, ids: { text: [5], source: [] }, labels: { text: ["a"], source: [] },
    vocabulary: { [ORDER[0]]: "first" }, stacks: [], strip_limits: {}, tensors: entries, equations: [equation],
  };
  const made = new InsidePass({ metadata, tensors: { statistics: { shape: [2, 4], data: new Float32Array(8) } } });
  const logits = LOGITS.slice(0, count);
  const sum = EXPONENTIALS.slice(0, count).reduce((total, each) => total + each, 0);
  made.add({ metadata: {}, tensors: { logits: flat(logits), probabilities: flat(Float32Array.from(logits, (logit) => Math.exp(logit) / sum)) } });
  return made;
}

const row = (found, name) => found.rows.find((each) => each.name === name).values;
const near = (found, expected) => assert.ok(Math.abs(found - expected) <= 1e-12 * Math.abs(expected), `${found} is not ${expected}`);

for (const { what, own, drawn } of [{ what: "among the largest", own: ORDER[2], drawn: 48 }, { what: "far below", own: ORDER[30_000], drawn: 49 }]) {
  test(`of a probability ${what}, a few dozen terms are drawn, and one for the others`, () => {
    const found = pass().arithmetic("probabilities", [0, own]);
    assert.equal(found.along.length, drawn + 1);
    for (const { values } of found.rows) assert.equal(values.length, drawn + 1);
    near(found.result, EXPONENTIALS[own] / SUM);
    assert.ok(found.difference < 1e-8, String(found.difference));
    assert.equal(row(found, "logit")[found.mark], LOGITS[own]);
    assert.deepEqual([...row(found, "logit").slice(0, 48)], ORDER.slice(0, 48).map((at) => LOGITS[at]));
    assert.ok(Number.isNaN(row(found, "logit").at(-1)));
    near(row(found, "probability").at(-1), ORDER.slice(48).reduce((sum, at) => sum + (at === own ? 0 : EXPONENTIALS[at]), 0) / SUM);
    near(row(found, "probability").reduce((sum, each) => sum + each, 0), 1);
    const others = (VOCABULARY - drawn).toLocaleString("en");
    assert.equal(found.along.label(drawn), `${others} others together`);
    assert.match(found.along.label(0), /first/);
    assert.ok(found.lines.some((line) => line.includes(`; and ${others} others: `)), found.lines.join("\n"));
    assert.deepEqual(found.links[0].at(found.mark), [0, own]);
    assert.equal(found.links[0].at(drawn), null); // many cells: none to open
  });
}

test("of a small vocabulary every term is drawn, in its own place", () => {
  const found = pass(500).arithmetic("probabilities", [0, 17]);
  assert.deepEqual([found.along.length, found.mark], [500, 17]);
  assert.deepEqual([...row(found, "logit")], [...LOGITS.slice(0, 500)]);
});

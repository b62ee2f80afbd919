// Tests what the page What if makes of the numbers that it asks for, and the sinusoidal table.
import assert from "node:assert/strict";
import { test } from "node:test";
import { likenessOf, sinusoidalTable } from "../../transformer/frontend/positions/sinusoidal.js";
import { codeOfPart, colourLimit, matricesOf } from "../../transformer/frontend/what_if/ablation_map.js";
import { answersOf, inWords } from "../../transformer/frontend/what_if/activation_patching.js";
import { uniqueNames } from "../../transformer/frontend/what_if/comparison.js";
import { divergence, inOrder, lastOf, logSoftmax, movedMost, probabilityOf, sharedLength } from "../../transformer/frontend/what_if/distributions.js";
import { LongRequest } from "../../transformer/frontend/what_if/long_request.js";
import { shortened } from "../../transformer/frontend/what_if/other_prompt.js";

/** An element that only keeps what it is given. */
const element = () => ({ style: {}, dataset: {}, firstElementChild: null, hidden: false, textContent: "", append() {}, setAttribute() {}, getAttribute: () => null, addEventListener() {}, blur() {} });
globalThis.document = /** @type {any} */ ({ createElement: element });
const settled = () => new Promise(setImmediate);

const of = (tensors) => lastOf({ metadata: {}, tensors });
const table = (shape, data, Kind = /** @type {any} */ (Float32Array)) => ({ shape, data: Kind.from(data) });

test("of a small vocabulary all tokens have their probability, of a large one the likeliest", () => {
  const small = of({ logits: table([2, 3], [9, 9, 9, 0, Math.log(2), 0]) });
  assert.deepEqual([0, 1, 2, 3].map((id) => Number(probabilityOf(small, id).toFixed(6))), [0.25, 0.5, 0.25, 0]);
  const large = of({ top_logits: table([1, 2], [1, 0]), top_ids: table([1, 2], [700, 3], Int32Array), normaliser: table([1], [2]) });
  assert.deepEqual([...large.keys()], [700, 3]);
  assert.ok(Math.abs(probabilityOf(large, 700) - Math.exp(-1)) < 1e-6);
});

test("what moved most, and how far", () => {
  const [one, other] = [[3, 2, 1, -9], [3, -9, 1, 2]].map(logSoftmax);
  assert.deepEqual([inOrder(one, 2), inOrder([1, 2, 2], 9)], [[0, 1], [1, 2, 0]]);
  assert.deepEqual([movedMost([one, other], -1, 9), movedMost([one, other], 1, 1), movedMost([one, one], 1, 9)], [[1], [3], []]);
  assert.ok(divergence(one, other) > 0.5);
  assert.equal(divergence(one, one), 0);
  assert.deepEqual([[[1, 2], [1, 3]], [[1], [1, 2]], [[1, 2], [1, 2]], [[], []]].map(sharedLength), [1, 1, 2, 0]);
});

test("every part of a model has a cell of its own, crossed out if it is ablated", () => {
  const point = (module) => [{ point: `${module}.hook_z`, head: 0 }, { point: `${module}.hook_z`, head: 1 }];
  const parts = [...point("encoder.blocks.0.attn"), { point: "encoder.blocks.0.hook_mlp_out", head: null }, ...point("decoder.blocks.0.attn"), ...point("decoder.blocks.0.cross_attn"), { point: "decoder.blocks.0.hook_mlp_out", head: null }];
  const { matrices, cells } = matricesOf(parts, [1, 2, 3, 4, 5, 6, 7, 8], new Set(["scale~decoder.blocks.0.cross_attn.hook_z~1~~0.0"]));
  assert.deepEqual(matrices.map(({ title, values, marked }) => [title, values, marked]), [["Encoder", [[1, 2, 3]], []], ["Decoder", [[4, 5, 8]], []], ["Cross-attention", [[6, 7]], [[0, 1]]]]);
  assert.deepEqual([matrices[2].rows, matrices[0].columns, cells[1].map(codeOfPart)[2]], [["decoder layer 0, cross-attention"], ["head 0", "head 1", "feed-forward"], "scale~decoder.blocks.0.hook_mlp_out~~~0.0"]);
});

test("colours end within the effects, and never at zero", () => {
  assert.deepEqual([[], [0, 0], [1, -2], [...new Array(99).fill(0.1), 50]].map(colourLimit), [1, 1, 2, 1]);
});

test("two answers are the likeliest, or where these are one, those that move most; a path is told in words", () => {
  assert.deepEqual(answersOf([[2, 1, 0], [0, 1, 2]].map(logSoftmax)), [0, 2]);
  assert.deepEqual(answersOf([[5, 3, 1], [5, 1, 3]].map(logSoftmax)), [1, 2]);
  const shares = [[[1, 0], [0.9, 0.1], [0.2, 0.8]], [[0, 0.05], [0, 0.4], [0, 0]]];
  assert.equal(inWords(["a", "b"], ["stream", "attention"], shares), "The residual stream carries the difference into layers 0 to 1 at position 0, “a” (0.90 to 1.00), then into layer 2 at position 1, “b” (0.80). What attention adds matters most in layer 1 at position 1, “b”: 0.40.");
  assert.equal(inWords(["a"], ["stream"], [[[0.01]]]), "No single position of the residual stream carries much of the difference.");
});

test("tokens that look alike have their ids; of two long prompts the part that differs is shown", () => {
  assert.deepEqual(uniqueNames(["a", "b", "a"]), ["a [0]", "b", "a [2]"]);
  assert.deepEqual([shortened("short\ntext", "other"), shortened("The capital of France is called", "The capital of Italy is called"), shortened("x".repeat(40), "x".repeat(40))], ["short ↵ text", "…al of France is called", `…${"x".repeat(22)}`]);
});

test("a computation of a large model begins when it is asked for, can be stopped, and isn't asked for again", async () => {
  const long = new LongRequest(/** @type {any} */ (element()), { ask: "Trace", does: "Each position is patched in turn." });
  /** @param {any} _signal @param {Promise<void>} [held] */
  async function* stream(_signal, held = Promise.resolve()) {
    yield { event: "progress", data: { share: 0.5 } };
    await held;
    yield { event: "result", data: 7 };
  }
  assert.equal(await long.run("small", stream, false), 7);
  const first = long.run("large", (signal) => stream(signal, new Promise(() => {})), true);
  assert.equal(long.offer.hidden, false);
  long.asked();
  await settled();
  assert.deepEqual([long.offer.hidden, long.running.hidden, long.words.textContent], [true, false, "Each position is patched in turn. 50%"]);
  long.stop();
  await settled();
  assert.deepEqual([long.offer.hidden, long.stopped.hidden], [false, false]);
  const second = long.run("large", stream, true); // was asked for before; what nobody waits for any more never comes
  assert.equal(await Promise.race([first, second]), 7);
});

test("the likeness of two positions depends on their distance alone", () => {
  const rows = sinusoidalTable(64, 192, 10_000);
  assert.deepEqual([...rows.subarray(0, 4)], [0, 1, 0, 1]);
  assert.ok(Math.abs(rows[5 * 192 + 2] - Math.sin(5 / 10_000 ** (2 / 192))) < 1e-6);
  assert.ok(Math.abs(likenessOf(rows, 192, 5, 8) - likenessOf(rows, 192, 40, 43)) < 1e-5);
  assert.ok(likenessOf(rows, 192, 5, 43) < likenessOf(rows, 192, 5, 8));
});

// Tests how two distributions are compared, and the sinusoidal table.
import assert from "node:assert/strict";
import { test } from "node:test";
import { likenessOf, sinusoidalTable } from "../../transformer/frontend/positions/sinusoidal.js";
import { divergence, lastOf, likeliestOf, movedMost, probabilityOf, sharedLength } from "../../transformer/frontend/what_if/distributions.js";

const of = (tensors) => lastOf({ metadata: {}, tensors });
const table = (shape, data, Kind = /** @type {any} */ (Float32Array)) => ({ shape, data: Kind.from(data) });

test("of a small vocabulary all tokens have their probability, of a large one the likeliest", () => {
  const small = of({ logits: table([2, 3], [9, 9, 9, 0, Math.log(2), 0]) });
  assert.deepEqual([0, 1, 2, 3].map((id) => Number(probabilityOf(small, id).toFixed(6))), [0.25, 0.5, 0.25, 0]);
  const large = of({ top_logits: table([1, 2], [1, 0]), top_ids: table([1, 2], [700, 3], Int32Array), normaliser: table([1], [2]) });
  assert.deepEqual([...large.keys()], [700, 3]);
  assert.ok(Math.abs(probabilityOf(large, 700) - Math.exp(-1)) < 1e-6);
});

test("what is likeliest in either, what moved most, and how far", () => {
  const one = of({ logits: table([1, 4], [3, 2, 1, -9]) }), other = of({ logits: table([1, 4], [3, -9, 1, 2]) });
  assert.deepEqual(likeliestOf([one, other], 2), [0, 1, 3]);
  assert.deepEqual(movedMost([one, other], -1, 9), [1]);
  assert.deepEqual(movedMost([one, other], 1, 1), [3]);
  assert.deepEqual(movedMost([one, one], 1, 9), []);
  assert.ok(divergence([one, other]) > 0.5);
  assert.equal(divergence([one, one]), 0);
  assert.deepEqual([[[1, 2], [1, 3]], [[1], [1, 2]], [[1, 2], [1, 2]], [[], []]].map(sharedLength), [1, 1, 2, 0]);
});

test("the likeness of two positions depends on their distance alone", () => {
  const rows = sinusoidalTable(64, 192, 10_000);
  assert.deepEqual([...rows.subarray(0, 4)], [0, 1, 0, 1]);
  assert.ok(Math.abs(rows[5 * 192 + 2] - Math.sin(5 / 10_000 ** (2 / 192))) < 1e-6);
  assert.ok(Math.abs(likenessOf(rows, 192, 5, 8) - likenessOf(rows, 192, 40, 43)) < 1e-5);
  assert.ok(likenessOf(rows, 192, 5, 43) < likenessOf(rows, 192, 5, 8));
});

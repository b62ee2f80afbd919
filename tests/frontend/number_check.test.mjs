// A recomputed number is equal to the model's up to what the model's type of numbers leaves open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sayCompared } from "../../transformer/frontend/number_check.js";

function said(difference, magnitude, setBy, rounding) {
  const badge = { textContent: "", state: null, getAttribute: () => badge.state, setAttribute: (_, value) => (badge.state = value) };
  sayCompared(badge, difference, magnitude, setBy, rounding);
  return badge.state;
}

test("a difference is compared with the largest value, and with how far apart the model's numbers are", () => {
  const bfloat16 = 2 ** -7;
  assert.equal(said(1e-6, 2), "equal");
  assert.equal(said(0.01, 2), "different");
  assert.equal(said(0.01, 2, [], bfloat16), "equal");
  assert.equal(said(0.1, 2, [], bfloat16), "different");
  assert.equal(said(0.1, 2, ["a change"], bfloat16), "set");
  assert.equal(said(0, 0, [], bfloat16), "equal");
});

// Tests that sampling gives the tokens and probabilities that Python's gives.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { samplingOf } from "../../transformer/frontend/engine/questions.js";
import { checkLogits, drawing, drawnWith, landing, sameSettings, shareOf, tokenAt } from "../../transformer/frontend/generation/sampling.js";

const cases = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "draws.json"), "utf-8"));
const logitsOf = ({ logits }) => Float32Array.from(logits);

test("probabilities are Python's, and what is cut off has none", () => {
  for (const one of cases) {
    const probabilities = drawnWith(logitsOf(one), one.settings);
    probabilities.forEach((share, id) => {
      assert.ok(Math.abs(share - one.probabilities[id]) <= 1e-9, `${JSON.stringify(one.settings)}: ${share} is not ${one.probabilities[id]}`);
      assert.equal(share === 0, one.probabilities[id] === 0);
    });
  }
});

test("a random number chooses the token that it chooses in Python", () => {
  for (const one of cases) assert.deepEqual(one.points.map((point) => tokenAt(point, logitsOf(one), one.settings)), one.tokens);
});

test("a random number lies in the share that it falls into, and shares fill the interval in the vocabulary's order", () => {
  for (const one of cases.filter(({ settings }) => settings.temperature > 0)) {
    const steps = drawing(logitsOf(one), one.settings);
    for (const point of one.points) {
      const { token, from, to } = landing(point, steps);
      assert.ok(from <= point + 1e-12 && point < to + 1e-12);
      const share = shareOf(token, steps);
      assert.ok(Math.abs(share.from - from) < 1e-12 && Math.abs(share.to - to) < 1e-12);
    }
    let end = 0;
    steps.weights.forEach((weight, id) => {
      const { from, to } = shareOf(id, steps);
      assert.ok(Math.abs(from - end) < 1e-12 && to >= from);
      end = to;
    });
    assert.ok(Math.abs(end - 1) < 1e-12);
  }
});

test("of the ranking, top-k leaves no fewer than top-p", () => {
  for (const one of cases) {
    const { order, ofTopK, kept, weights } = drawing(logitsOf(one), one.settings);
    assert.ok(1 <= kept && kept <= ofTopK && ofTopK <= order.length);
    assert.equal(new Set(order).size, order.length);
    for (let rank = 1; rank < order.length; rank++) assert.ok(one.logits[order[rank - 1]] >= one.logits[order[rank]]);
    assert.ok(order.slice(kept).every((id) => weights[id] === 0));
  }
});

test("settings are the same whether off is written as nothing or as a number", () => {
  const settings = { temperature: 0.8, top_k: 0, top_p: 1, seed: 3 };
  assert.ok(sameSettings(settings, { ...settings, top_k: null, top_p: null }));
  for (const other of [{ temperature: 0.81 }, { top_k: 1 }, { top_p: 0.9 }, { seed: 4 }]) assert.ok(!sameSettings(settings, { ...settings, ...other }));
  assert.ok(!sameSettings(settings, null));
});

test("a request may leave one token to choose from, and no fewer", () => {
  assert.deepEqual(samplingOf({ temperature: 0.5, top_k: 1, top_p: 0.9, seed: 3 }), { temperature: 0.5, top_k: 1, top_p: 0.9, seed: 3n });
  assert.deepEqual(samplingOf({}), { temperature: 1, top_k: 0, top_p: 1, seed: null });
  for (const wrong of [{ top_k: -1 }, { top_k: 1.5 }, { top_p: 1.1 }, { temperature: -1 }]) assert.throws(() => samplingOf(wrong));
});

test("logits that are no numbers give no token, but a sentence", () => {
  for (const logits of [[1, NaN, 2], [NaN, 1, 2], [1, Infinity], [-Infinity, -Infinity]]) {
    for (const temperature of [0, 1]) {
      assert.throws(() => tokenAt(0.5, Float32Array.from(logits), { temperature }), { message: /^The model's logits are not numbers: .*\.$/, isFinal: true });
    }
  }
  checkLogits(Float32Array.from([-Infinity, 3e38, 0]));
});

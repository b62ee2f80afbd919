// Tests that the engine in JavaScript computes what Python's does: passes, with interventions too, and the texts it writes.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { largestAbsolute, largestDifference } from "../../transformer/frontend/arithmetic.js";
import { isCausal } from "../../transformer/frontend/attention_config.js";
import { emptyCache, forwardPass } from "../../transformer/frontend/engine/forward_pass.js";
import { DecodeState } from "../../transformer/frontend/engine/generation.js";
import { hooksOf } from "../../transformer/frontend/engine/interventions.js";
import { modelOf, neededFor, readAtLast } from "../../transformer/frontend/engine/model.js";
import { randomPoint } from "../../transformer/frontend/engine/random_points.js";
import { drawnWith } from "../../transformer/frontend/generation/sampling.js";
import { readRecording } from "../../transformer/frontend/recording.js";

const TOLERANCE = 1e-4;
const folder = join(process.env.HEADSUP_FIXTURES, "engine");
const cases = readdirSync(folder).filter((name) => name.endsWith(".safetensors")).map((name) => {
  const { metadata: about, tensors } = readRecording(readFileSync(join(folder, name)));
  const config = about.config ?? JSON.parse(readFileSync(join(about.folder, "config.json"), "utf-8"));
  const weights = about.folder ? join(about.folder, "model.safetensors") : join(folder, name.replace(".safetensors", ".weights"));
  const model = modelOf(readFileSync(weights), config, about.equations);
  return { name, model, weights, about, expected: tensors, text: about.text };
});

/**
 * How far numbers are from those of a tensor, from a place on, in parts of its largest; Infinity where one is −∞ and the other isn't.
 */
function deviation(found, expected, from = 0) {
  const off = largestDifference(found, expected.subarray(from, from + found.length));
  return off && off / largestAbsolute(expected);
}

test("every tensor of a pass is what Python's engine computes", () => {
  for (const { name, model, about, expected, text } of cases) {
    assert.ok(model.simd);
    for (const [how, computing] of Object.entries({ WebAssembly: model, JavaScript: { ...model, simd: null } })) {
      const found = forwardPass(computing, text, { hooks: hooksOf(model, about.changes) });
      assert.deepEqual(found.size, Object.keys(expected).length);
      for (const [point, { shape, data }] of found) {
        assert.deepEqual(shape, expected[point].shape, `${name}: ${point}`);
        const off = deviation(data, expected[point].data);
        assert.ok(off <= TOLERANCE, `${name}, ${about.changes.join(" ")}, in ${how}: ${point} is off by ${off}`);
      }
    }
  }
});

test("a browser without WebAssembly opens a model all the same", () => {
  const { WebAssembly } = globalThis;
  globalThis.WebAssembly = undefined;
  const model = modelOf(readFileSync(cases[0].weights), cases[0].model.config, cases[0].about.equations);
  globalThis.WebAssembly = WebAssembly;
  assert.equal(model.simd, null);
  assert.deepEqual([...model.weights], [...cases[0].model.weights]);
});

test("with a cache, the newest positions are those of a whole pass", () => {
  for (const { name, model, about, expected, text } of cases) {
    const hooks = hooksOf(model, about.changes);
    const cache = emptyCache();
    if (!isCausal(model.config)) {
      forwardPass(model, text, { cache });
      assert.throws(() => forwardPass(model, text, { cache }), /reads in both directions/);
    }
    if (!isCausal(model.config) || hooks.looksAhead) continue;
    for (const end of new Set([1, 3, 4, text.tokens.length].map((length) => Math.min(length, text.tokens.length)))) {
      const start = cache.length;
      const found = forwardPass(model, { ...text, tokens: text.tokens.slice(0, end) }, { cache, hooks });
      assert.equal(found.has("encoder.hook_embed"), start === 0 && text.source.length > 0);
      for (const [point, { data }] of found) {
        if (model.equations.find((equation) => equation.name === point).dims[0] !== "pos" || point.startsWith("encoder.")) continue;
        const row = expected[point].data.length / text.tokens.length;
        assert.ok(deviation(data, expected[point].data, start * row) <= TOLERANCE, `${name}: ${point} from ${start} on`);
      }
    }
  }
});

test("what logits are made of is computed alone, and gives the same", () => {
  for (const { model, expected, text } of cases.filter(({ about }) => !about.changes.length)) {
    const found = forwardPass(model, text, { wanted: neededFor(["logits"], model.equations) });
    assert.ok(![...found.keys()].some((name) => name.endsWith("hook_result") || name === "probabilities"));
    assert.ok(deviation(found.get("logits").data, expected.logits.data) <= TOLERANCE);
  }
});

test("the last position is computed alone where nothing else is read, and gives the same", () => {
  for (const { name, model, expected, text } of cases.filter(({ about: { changes } }) => !changes.length)) {
    const wanted = neededFor(["logits"], model.equations);
    const atLast = readAtLast(wanted, model.equations);
    const found = forwardPass(model, text, { wanted, atLast });
    assert.deepEqual(found.get("logits").shape, [1, model.config.vocab_size]);
    for (const point of atLast) {
      const { shape: [rows], data } = found.get(point) ?? { shape: [0], data: [] };
      if (rows !== 1 || point.startsWith("encoder.")) continue;
      const row = expected[point].data.length / text.tokens.length;
      const off = model.equations.find((equation) => equation.name === point).dims[0] === "pos" ? deviation(data, expected[point].data, (text.tokens.length - 1) * row) : 0;
      assert.ok(off <= TOLERANCE, `${name}: ${point} is off by ${off}`);
    }
    const cached = model.equations.filter(({ name: point }) => wanted.has(point) && model.cached.has(point));
    for (const { name: point } of cached) assert.equal(found.get(point).shape[0], text.tokens.length, `${name}: ${point}`);
  }
});

test("random numbers are NumPy's", () => {
  for (const [seed, position, point] of JSON.parse(readFileSync(join(folder, "points.json"), "utf-8"))) assert.equal(randomPoint(seed, position), point);
});

test("texts are Python's, past the context too, unless two logits are as good as equal, or a random number lies on an edge", () => {
  const texts = cases.flatMap(({ name, model, about }) => (about.texts ?? []).map((text) => ({ name, model, ...text })));
  for (const { name, model, tokens, source, settings, changes, written } of texts) {
    const state = new DecodeState(model, { tokens, source, settings, hooks: hooksOf(model, changes) });
    for (const expected of written) {
      const { token, logits, point } = state.step();
      if (token === expected) continue;
      assert.ok(isClose(settings, logits, point, token, expected), `${name}, ${changes}: ${token} at ${state.tokens.length - 1}, not ${expected}`);
      break; // from here on the texts differ
    }
  }
});

function isClose(settings, logits, point, token, expected) {
  if (settings.temperature === 0) return Math.abs(logits[token] - logits[expected]) <= TOLERANCE * largestAbsolute(logits);
  let reached = 0;
  return drawnWith(logits, settings).some((share) => Math.abs((reached += share) - point) <= TOLERANCE);
}

test("without a seed, texts differ", () => {
  const { model } = cases.find(({ name }) => name.startsWith("stories"));
  const [one, other] = [1, 2].map(() => new DecodeState(model, { tokens: [1, 2], settings: { temperature: 1 } }).step().point);
  assert.notEqual(one, other);
});

test("what can't be read or changed is said", () => {
  const { model, text, about } = cases.find(({ name }) => name.startsWith("stories"));
  assert.throws(() => forwardPass(model, { tokens: [] }), /no new tokens/);
  assert.throws(() => forwardPass(model, { tokens: [-1] }), /id -1 is not in this model's vocabulary/);
  assert.throws(() => forwardPass(model, { tokens: new Array(1000).fill(1) }), /1000 tokens; this model reads at most/);
  assert.throws(() => forwardPass(model, { ...text, source: [1] }), /reads no source/);
  for (const code of ["melt~hook_embed", "scale~blocks.9.hook_attn_out~~~0"]) assert.throws(() => hooksOf(model, [code]), /no change called “melt”|computes no blocks.9/);
  const bytes = readFileSync(join(about.folder, "model.safetensors"));
  assert.throws(() => modelOf(bytes, model.config, [{ ...model.equations[0], operands: { table: [{ name: "gone", dims: [], cells: [] }] } }]), /no weights called gone/);
});

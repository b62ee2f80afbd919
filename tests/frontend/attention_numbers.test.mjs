// Tests that what the page Attention derives from queries, keys and values is what Python's engine computed.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { dotProducts, largestAbsolute, largestDifference, weightedValues } from "../../transformer/frontend/arithmetic.js";
import { Pass } from "../../transformer/frontend/attention/pass.js";
import { isCausal } from "../../transformer/frontend/attention_config.js";
import { pooled } from "../../transformer/frontend/engine/attention_overview.js";
import { modelOf } from "../../transformer/frontend/engine/model.js";
import { readRecording } from "../../transformer/frontend/recording.js";

const TOLERANCE = 1e-5; // of the tensor's largest value
const POINTS = { raw: "raw_scores", scaled: "scaled_scores", capped: "capped_scores", masked: "attn_scores", weights: "pattern" };
const OF_ENCODERS = ["later", "windows"]; // rules
const KINDS = { self: /^blocks/, encoder: /^encoder/, decoder: /^decoder.*\.attn$/, cross: /cross_attn$/ };

/** A pass of the page over the attentions of one kind, before anything of it has come. @returns {Pass} */
function passOf(config, kind, modules, queries, keys, more = {}) {
  const metadata = {
    config, kind, modules, names: modules.map(() => ({ q: "q", k: "k", v: "v" })), queries, keys, labels: { text: [], source: [] },
    measures: [], predicted_position: 0, offsets: { queries: 0, keys: 0 }, next: null, title: "", ...more,
  };
  const overview = { shape: [modules.length, config.n_heads, 1, 1], data: new Uint8Array(modules.length * config.n_heads) };
  return new Pass(/** @type {any} */ ({ metadata, tensors: { overview, measures: { shape: [0], data: new Float32Array() } } }));
}

/** The part of a matrix (row, head · d) that is a head's. */
function ofHead({ shape, data }, head, heads) {
  const [rows, d] = [shape[0], data.length / shape[0] / heads];
  return Float64Array.from({ length: rows * d }, (_, at) => data[(Math.floor(at / d) * heads + head) * d + (at % d)]);
}

/** The passes that Python recorded in which no number was set: rules may be left out. */
function* recorded() {
  const folder = join(process.env.HEADSUP_FIXTURES, "engine");
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".safetensors"))) {
    const { metadata: about, tensors } = readRecording(readFileSync(join(folder, name)));
    const config = about.config ?? JSON.parse(readFileSync(join(about.folder, "config.json"), "utf-8"));
    const without = about.changes.map((code) => /^without~(\w+)~$/.exec(code)?.[1]);
    const isPadded = [...about.text.tokens, ...about.text.source].includes(config.pad_token_id); // the app's texts never are
    if (isPadded || without.includes(undefined)) continue;
    const file = about.folder ? join(about.folder, "model.safetensors") : join(folder, name.replace(".safetensors", ".weights"));
    const { weights } = modelOf(readFileSync(file), config, about.equations);
    yield { where: `${name} without ${without}`, config, tensors, weights, equations: about.equations, without: without.filter((rule) => rule !== "norm") };
  }
}

/** Compare all that is derived of a head, in a layer of a pass, with what was recorded. */
function checkHead({ where, config, tensors, weights, without }, pass, layer, head) {
  const module = pass.modules[layer];
  const heads = config.n_heads;
  const keyHeads = config.n_kv_heads ?? heads;
  const shared = Math.floor((head * keyHeads) / heads);
  const own = (point) => tensors[`${module}.${point}`];
  const entering = (part) => [`hook_rot_${part}`, `${part}_norm.hook_out`, `hook_${part}`].map(own).find(Boolean);
  const v = ofHead(own("hook_v"), shared, keyHeads);
  const parts = { [`v[:, ${shared}]`]: v };
  if (!pass.uniform) {
    parts[`q[:, ${head}]`] = ofHead(entering("q"), head, heads);
    parts[`k[:, ${shared}]`] = ofHead(entering("k"), shared, keyHeads);
  }
  const learned = `${module}.relative_bias.weight`;
  if (pass.bias?.buckets) parts[`${learned}[:, ${head}]`] = ofHead(weights.get(learned), head, heads);
  pass.add(/** @type {any} */ ({ tensors: Object.fromEntries(Object.entries(parts).map(([name, data]) => [name, { data }])) }));
  pass.derived.clear(); // another layer's parts have the same names

  const steps = pass.steps(layer, head, without);
  const check = (found, point, expected) => {
    const off = largestDifference(found, expected);
    assert.ok(off <= TOLERANCE * largestAbsolute(own(point).data), `${where}: ${module}.${point} of head ${head} is off by ${off}`);
  };
  for (const [step, point] of Object.entries(POINTS)) {
    const expected = own(`hook_${point}`)?.data;
    assert.equal(Boolean(steps[step]), Boolean(expected), `${where}: ${step} of ${module}`);
    if (expected) check(steps[step], `hook_${point}`, expected.subarray(head * steps[step].length, (head + 1) * steps[step].length));
  }
  const rows = Array.from({ length: pass.queries }, (_, query) => steps.weights.subarray(query * pass.keys, (query + 1) * pass.keys));
  const z = rows.map((row) => weightedValues(row, v, pass.width).z);
  const out = ofHead(weights.get(`${module}.out.weight`), head, heads);
  check(z.flatMap((row) => [...row]), "hook_z", ofHead(own("hook_z"), head, heads));
  check(z.flatMap((row) => [...dotProducts(row, out, row.length)]), "hook_result", ofHead(own("hook_result"), head, heads));
}

test("every step of a head is what Python's engine computed, whatever the attention has and goes without", () => {
  const seen = new Set();
  for (const found of recorded()) {
    const { config, tensors, equations } = found;
    const all = Object.keys(tensors).filter((name) => name.endsWith(".hook_pattern")).map((name) => name.replace(".hook_pattern", ""));
    for (const [kind, pattern] of Object.entries(KINDS)) {
      const modules = all.filter((name) => pattern.test(name));
      if (!modules.length) continue;
      const [, queries, keys] = tensors[`${modules[0]}.hook_pattern`].shape;
      const without = found.without.filter((rule) => !OF_ENCODERS.includes(rule) || kind === "encoder" || (kind === "self" && !isCausal(config)));
      const pass = passOf(config, kind, modules, queries, keys, {
        causal: kind === "decoder" || (kind === "self" && isCausal(config)),
        uniform: !tensors[`${modules[0]}.hook_q`],
        cap: kind === "cross" ? null : config.score_cap,
        bias: equations.find(({ name }) => name === `${modules[0]}.hook_position_bias`)?.constants,
      });
      modules.forEach((_, layer) => [0, config.n_heads >> 1, config.n_heads - 1].forEach((head) => checkHead({ ...found, without }, pass, layer, head)));
      seen.add(kind);
    }
  }
  assert.deepEqual([...seen].sort(), Object.keys(KINDS).sort());
});

test("of a long text a head's outline has the largest weight of each block, and what the mask hides stays hidden", () => {
  const data = Float32Array.from({ length: 100 * 100 }, (_, at) => (at % 100 > at / 100 ? 0 : ((at * 7) % 200) / 254));
  const pass = passOf({ n_heads: 1, d_model: 4 }, "self", ["0"], 100, 100, { causal: true });
  pass.cells = { shape: [1, 1, 64, 64], data: pooled({ shape: [1, 100, 100], data }, data.map((_, at) => Number(at % 100 <= at / 100))).data };
  const blockOf = Array.from({ length: 100 }, (_, at) => Array.from({ length: 64 }, (_, block) => Math.floor((block * 100) / 64)).filter((start) => start <= at).length - 1);
  const largest = Array.from({ length: 64 }, () => new Float64Array(64));
  data.forEach((weight, at) => {
    const [row, column] = [blockOf[Math.floor(at / 100)], blockOf[at % 100]];
    largest[row][column] = Math.max(largest[row][column], weight);
  });
  pass.outline(0, 0).forEach((found, at) => {
    const [query, key] = [Math.floor(at / 100), at % 100];
    const expected = key > query ? -Infinity : largest[blockOf[query]][blockOf[key]];
    assert.ok(found === expected || Math.abs(found - expected) < 1e-6, `query ${query}, key ${key}: ${found}, not ${expected}`);
  });
});

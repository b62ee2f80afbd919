// Tests how the parts of a pass are requested, and how the answers are converted.
import assert from "node:assert/strict";
import { test } from "node:test";
import { namesOf } from "../../transformer/frontend/attention/tensor_names.js";
import { requestParts } from "../../transformer/frontend/inside/requests.js";

/** @type {any} */
const ABOUT = {
  config: { n_heads: 4, n_kv_heads: 2 }, uniform: false, modules: ["blocks.0.attn"],
  names: [{ q: "Q", k: "K", v: "V", before: "before", out: "out", after: "after" }],
};

test("heads that share keys and values are asked for them by what they share", () => {
  assert.deepEqual(namesOf(ABOUT, [["head", 0, 3]]), ["Q[:, 3]", "K[:, 1]", "V[:, 1]"]);
  assert.deepEqual(namesOf({ ...ABOUT, names: [{ q: null, k: null, v: "V" }] }, [["head", 0, 0]]), ["V[:, 0]"]);
});

test("a row is what the model computed there, and the stream around it as far as there is one", () => {
  const names = namesOf(ABOUT, [["row", 0, 1, 5]]);
  assert.ok(names.includes("blocks.0.attn.hook_pattern[1, 5]") && names.includes("blocks.0.attn.hook_z[5, 1]") && names.includes("before[5]"));
  assert.equal(names.length, 10);
  const bare = namesOf({ ...ABOUT, uniform: true, names: [{ before: null, out: "out", after: null }] }, [["row", 0, 1, 5]]);
  assert.deepEqual(bare.filter((name) => /raw|scaled|attn_scores|before|after/.test(name)), []);
});

const SIZES = { a: [["pos", 3], ["d", 4]], z: [["pos", 3], ["head", 2], ["d", 4]], big: [["pos", 1000], ["d", 1500]], vast: [["pos", 3000], ["d", 1000]] };
/** @type {any} */
const pass = { describe: (name) => ({ dims: SIZES[name].map(([dim]) => dim), sizes: SIZES[name].map(([, size]) => size) }) };

/** @returns {any} */
function fake() {
  const asked = [];
  const answer = async (path, values) => {
    asked.push([path, values]);
    const named = { tensors: values.names, lens: ["lens", "lens.rank"], attribution: ["shares"], circuit: [`circuit[${values.kind}, ${values.attention}, ${values.head}].left`] }[path];
    return { tensors: Object.fromEntries(named.map((name) => [name, { name }])), metadata: path === "attribution" ? { names: ["embed"] } : { vocabulary: { [path]: path } } };
  };
  return { asked, recording: answer, json: async (path) => (asked.push([path]), { checks: [{ name: "a" }] }) };
}

test("tensors, heads and rows are one question, and have the names that a pass gives them", async () => {
  const api = fake();
  const found = await requestParts(api, pass, [["tensor", "a"], ["slice", "z", 1], ["row", "a", 2]]);
  assert.deepEqual(api.asked, [["tensors", { names: ["a", "z[:, 1]", "a[2]"] }]]);
  assert.deepEqual(Object.keys(found.tensors), ["a", "z[1]", "a[2]"]);
});

test("each other question has an address of its own, and all come together", async () => {
  const api = fake();
  const found = await requestParts(api, pass, [["lens", 2], ["attribution", 2, 7], ["checks"], ["circuit", "qk", "blocks.0.attn", 1], ["tensor", "a"], /** @type {any} */ (["nonsense", 1])]);
  assert.deepEqual(Object.keys(found.tensors).sort(), ["a", "circuit[qk, blocks.0.attn, 1].left", "lens.rank[2]", "lens[2]", "attribution[2, 7]"].sort());
  assert.deepEqual(found.metadata.attribution, { names: ["embed"] });
  assert.deepEqual(found.metadata.checks, [{ name: "a" }]);
  assert.deepEqual(found.metadata.vocabulary, { lens: "lens", circuit: "circuit", tensors: "tensors" });
  const [, circuit] = api.asked.find(([path]) => path === "circuit");
  assert.deepEqual([circuit.source, circuit.changes, circuit.begin], [null, null, null]); // it is the weights' alone
});

test("one answer is no larger than it may be; the first tensor may", async () => {
  const names = async (...parts) => {
    const api = fake();
    await requestParts(api, pass, parts.map((name) => ["tensor", name]));
    return api.asked[0][1].names;
  };
  assert.deepEqual(await names("big", "vast", "a"), ["big", "a"]);
  assert.deepEqual(await names("vast", "a"), ["vast"]);
});

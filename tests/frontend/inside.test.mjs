// Tests what the scripts of Inside compute without a page: scalar functions, parts of a pass that come one by one,
// slices of a tensor, the search for a name. tests/engine/test_inside_numbers.py tests that the arithmetic is the
// engine's.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { HIDDEN } from "../../transformer/frontend/colours.js";
import { ACTIVATIONS, dotProducts, erf } from "../../transformer/frontend/arithmetic.js";
import { turned } from "../../transformer/frontend/inside/circuit_matrix.js";
import { InsidePass } from "../../transformer/frontend/inside/pass.js";
import { TensorSlice, sliceDims } from "../../transformer/frontend/inside/tensor_slice.js";
import { inputsOf } from "../../transformer/frontend/inside/cell_inputs.js";
import { pooled } from "../../transformer/frontend/inside/vector_strips.js";
import { matching } from "../../transformer/frontend/inside/search.js";
import { exactNumber } from "../../transformer/frontend/number_format.js";

const tensorOf = (data) => ({ shape: [data.length], data });

const known = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "functions.json"), "utf-8"));
const near = (found, expected, allowed = 1e-13) => assert.ok(Math.abs(found - expected) <= allowed, `${found} is not ${expected}`);

test("the error function and the activations are those of PyTorch in double precision", () => {
  known.x.forEach((x, at) => {
    near(erf(x), known.erf[at], 1e-15);
    for (const [name, activation] of Object.entries(ACTIVATIONS)) near(activation(x), known[name][at], 1e-14 * Math.max(1, Math.abs(x)));
  });
  assert.deepEqual(Object.keys(ACTIVATIONS).sort(), known.activations);
});

test("a circuit is the product of its factors, and its queries turn with the distance as the engine's do", () => {
  for (const { left, right, width, fits, rotation } of JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "circuits.json"), "utf-8"))) {
    for (const [distance, expected] of Object.entries(fits)) {
      const found = dotProducts(turned(left, width, Number(distance), rotation), right, width);
      assert.equal(found.length, expected.length);
      // The engine's table of angles is in single precision.
      found.forEach((value, at) => near(value, expected[at], 1e-6));
    }
  }
});

// Two heads of two queries and three keys, 2 × 2 × 3 numbers, sent whole or head by head.
const SIZES = [2, 2, 3];
const WHOLE = Float32Array.from({ length: 12 }, (_, at) => at);
const SLICES = { "blocks.0.attn.hook_pattern[0]": tensorOf(WHOLE.subarray(0, 6)), "blocks.0.attn.hook_pattern[1]": tensorOf(WHOLE.subarray(6)) };

function outline(more = {}) {
  const entries = [
    { name: "blocks.0.attn.hook_pattern", kind: "point", dims: ["head", "query", "key"], sizes: SIZES },
    { name: "blocks.0.attn.hook_v", kind: "point", dims: ["key", "head", "d_head"], sizes: [3, 2, 2] },
    { name: "blocks.0.attn.hook_z", kind: "point", dims: ["pos", "head", "d_head"], sizes: [2, 2, 2] },
    { name: "blocks.0.attn.qkv.weight", kind: "parameter", dims: ["part", "head", "d_head", "d_model"], sizes: [3, 2, 2, 4] },
    ...(more.entries ?? []),
  ];
  const z = {
    name: "blocks.0.attn.hook_z", operation: "multiply", dims: ["pos", "head", "d_head"], operands: {
      x: [{ name: "blocks.0.attn.hook_pattern", dims: ["head", "query", "key"], cells: ["head", "pos", ":"] }],
      weight: [{ name: "blocks.0.attn.hook_v", dims: ["key", "head", "d_head"], cells: [":", "head", "d_head"] }],
    },
  };
  const metadata = {
    id: "x", title: "x", config: { d_model: 4, n_heads: 2, pad_token_id: null }, ids: { text: [5, 6], source: [] },
    labels: { text: ["a", "b"], source: [] }, vocabulary: { 5: "a", 6: "b" }, stacks: [], strip_limits: { hook_embed: 2 },
    tensors: entries, equations: [z],
  };
  const statistics = { shape: [entries.length, 4], data: Float32Array.from(entries.flatMap((_, row) => [row, 1, -row - 1, row])) };
  return { metadata, tensors: { statistics, "strip.hook_embed": { shape: [2, 3], data: new Uint8Array(6) } } };
}

test("a tensor is the same whether it comes whole or head by head", () => {
  const name = "blocks.0.attn.hook_pattern";
  const [whole, sliced] = [new InsidePass(outline()), new InsidePass(outline())];
  whole.add({ metadata: {}, tensors: { [name]: tensorOf(WHOLE) } });
  sliced.add({ metadata: {}, tensors: SLICES });
  for (const pass of [whole, sliced]) {
    assert.deepEqual([...pass.tensor(name, 1).data], [6, 7, 8, 9, 10, 11]);
    assert.deepEqual(pass.tensor(name, 1).dims, ["query", "key"]);
  }
  assert.deepEqual(new InsidePass(outline()).missing(name, 1), [["tensor", name]]); // what is small is asked for whole
  for (let at = 0; at < 12; at++) assert.equal(sliced.cell(name, at), whole.cell(name, at));
});

test("a large tensor with heads is asked for head by head, and only what isn't there", () => {
  const name = "big";
  const sizes = [300, 2, 200];
  const pass = new InsidePass(outline({ entries: [{ name, kind: "point", dims: ["pos", "head", "d_model"], sizes }] }));
  assert.deepEqual(pass.missing(name, 1), [["slice", name, 1]]);
  assert.equal(pass.tensor(name, 1), null);
  pass.add({ metadata: {}, tensors: { "big[1]": tensorOf(Float32Array.from({ length: 60_000 }, (_, at) => at)) } });
  assert.ok(pass.has(name, 1) && !pass.has(name));
  assert.deepEqual(pass.missing(name), [["slice", name, 0]]);
  assert.equal(pass.value(name, [3, 1, 7]), 607);
  pass.add({ metadata: {}, tensors: { "big[0]": tensorOf(new Float32Array(60_000)) } });
  const { data, sizes: whole } = pass.tensor(name);
  assert.deepEqual(whole, sizes);
  assert.equal(data[(3 * 2 + 1) * 200 + 7], 607);
});

test("what is asked for is what the arithmetic of the cell reads", () => {
  const pass = new InsidePass(outline());
  const name = "blocks.0.attn.hook_z";
  assert.deepEqual(pass.needs(name, [1, 0, 1]).map(([, each]) => each), [name, "blocks.0.attn.hook_pattern", "blocks.0.attn.hook_v"]);
  assert.equal(pass.arithmetic(name, [1, 0, 1]), null);
  assert.deepEqual(pass.cellsOf(name, [1, 0, 1]), [
    { name: "blocks.0.attn.hook_pattern", role: "x", index: [0, 1, null] }, { name: "blocks.0.attn.hook_v", role: "weight", index: [null, 0, 1] },
  ]);
  assert.deepEqual(pass.readers("blocks.0.attn.hook_v"), [name]);
  assert.deepEqual(pass.readers(name), []);
  const v = Float32Array.from({ length: 12 }, (_, at) => at / 2);
  pass.add({ metadata: {}, tensors: { "blocks.0.attn.hook_pattern": tensorOf(WHOLE), "blocks.0.attn.hook_v": tensorOf(v), [name]: tensorOf(new Float32Array(8)) } });
  const found = pass.arithmetic(name, [1, 0, 1]);
  assert.equal(found.result, 3 * 0.5 + 4 * 2.5 + 5 * 4.5);
  assert.equal(found.difference, found.result); // 0 was recorded
  assert.equal(pass.arithmetic("blocks.0.attn.qkv.weight", [0, 0, 0, 0]), null);
});

test("a query sees what isn't after it, a whole source, and never padding", () => {
  const made = outline();
  Object.assign(made.metadata, { ids: { text: [9, 5, 6], source: [5, 9] }, config: { ...made.metadata.config, pad_token_id: 9 } });
  const pass = new InsidePass(made);
  const sees = (name) => [0, 1, 2].map((query) => [0, 1, 2].map((key) => {
    const { isAfter, isPadding } = pass.visibility(name, query, key);
    return Number(!isAfter && !isPadding);
  }).join("")).join(" ");
  assert.equal(sees("blocks.0.attn.hook_mask"), "000 010 011");
  assert.equal(sees("decoder.blocks.0.cross_attn.hook_mask").slice(0, 2), "10");
  assert.equal(sees("encoder.blocks.0.attn.hook_mask").slice(0, 2), "10");
});

test("statistics and strips are those of the outline", () => {
  const pass = new InsidePass(outline());
  assert.deepEqual(pass.statistics("blocks.0.attn.hook_z"), { mean: 2, spread: 1, smallest: -3, largest: 2 });
  assert.equal(pass.magnitude("blocks.0.attn.hook_z"), 3);
  assert.deepEqual(pass.strip("hook_embed"), { rows: 2, columns: 3, data: new Uint8Array(6), limit: 2 });
  assert.equal(pass.strip("blocks.0.attn.hook_z"), null);
  assert.equal(pass.arcs("blocks.0.attn"), null);
});

test("a place is said in words", () => {
  const pass = new InsidePass(outline());
  assert.equal(pass.cellInWords("blocks.0.attn.hook_pattern", [1, 1, 0]), "head 1, query “b” at position 1, key “a” at position 0");
  assert.equal(pass.cellInWords("blocks.0.attn.hook_z", [1, 0, 1]), "“b” at position 1, head 0, dimension 1");
  assert.equal(pass.cellInWords("blocks.0.attn.qkv.weight", [1, 0, 1, 3]), "part k, head 0, dimension 1, dimension 3");
  assert.equal(pass.cellInWords("blocks.0.attn.hook_z", [null, 0, null]), "head 0");
  assert.equal(pass.inNumbers("blocks.0.attn.hook_z", [1, 0, 1]), "position 1, head 0, dimension 1");
  pass.offset = 40; // the model reads the end of a long text
  assert.equal(pass.cellInWords("blocks.0.attn.hook_z", [1, null, null]), "“b” at position 1 (position 41 of the whole text)");
});

test("two dimensions are drawn, and the others held", () => {
  assert.deepEqual(sliceDims(["pos", "d_model"]), { held: [], drawn: ["pos", "d_model"] });
  assert.deepEqual(sliceDims(["pos", "head", "d_head"]), { held: ["head"], drawn: ["pos", "d_head"] });
  assert.deepEqual(sliceDims(["pos", "kv_head", "d_head"]), { held: ["kv_head"], drawn: ["pos", "d_head"] });
  assert.deepEqual(sliceDims(["part", "head", "d_head", "d_model"]), { held: ["part", "head"], drawn: ["d_head", "d_model"] });
  assert.deepEqual(sliceDims(["part", "head", "d_head"]), { held: ["part"], drawn: ["head", "d_head"] });
  assert.deepEqual(sliceDims(["d_model"]), { held: [], drawn: ["d_model"] });
});

test("what is drawn is the part that is held, and every cell of it has its place", () => {
  const pass = new InsidePass(outline());
  const name = "blocks.0.attn.qkv.weight";
  assert.equal(new TensorSlice(pass, name, { part: 2, head: 1 }).values, null);
  const data = Float32Array.from({ length: 48 }, (_, at) => at);
  pass.add({ metadata: {}, tensors: { [name]: tensorOf(data) } });
  const slice = new TensorSlice(pass, name, { part: 2, head: 1 });
  assert.deepEqual([...slice.values], [40, 41, 42, 43, 44, 45, 46, 47]);
  for (const [at, value] of slice.values.entries()) {
    const cell = { row: Math.floor(at / 4), column: at % 4 };
    assert.equal(pass.value(name, slice.indexOf(cell)), value);
    assert.deepEqual(slice.cellAt(slice.indexOf(cell)), cell);
  }
});

test("a head's scores have their own scale, as on the page Attention; other tensors one for all heads", () => {
  const scores = { name: "blocks.0.attn.hook_attn_scores", kind: "point", dims: ["head", "query", "key"], sizes: SIZES };
  const pass = new InsidePass(outline({ entries: [scores] }));
  const data = Float32Array.from([1, -Infinity, 2, -3, 0, 1, 5, 6, 7, 8, 9, 10]);
  pass.add({ metadata: {}, tensors: { [scores.name]: tensorOf(data), "blocks.0.attn.hook_z": tensorOf(new Float32Array(8)) } });
  assert.deepEqual([0, 1].map((head) => new TensorSlice(pass, scores.name, { head }).limit), [3, 10]);
  assert.deepEqual([0, 1].map((head) => new TensorSlice(pass, "blocks.0.attn.hook_z", { head }).limit), Array(2).fill(pass.magnitude("blocks.0.attn.hook_z")));
});

test("a weight that the mask hides is drawn as hidden", () => {
  const pass = new InsidePass(outline());
  pass.add({ metadata: {}, tensors: { "blocks.0.attn.hook_pattern": tensorOf(WHOLE) } });
  const slice = new TensorSlice(pass, "blocks.0.attn.hook_pattern", { head: 1 });
  assert.deepEqual([...slice.drawn], [6, -Infinity, -Infinity, 9, 10, -Infinity]);
  assert.deepEqual([...slice.values], [6, 7, 8, 9, 10, 11]);
});

test("statistics and bins are of what is finite", () => {
  const pass = new InsidePass(outline());
  pass.add({ metadata: {}, tensors: { "blocks.0.attn.hook_pattern": tensorOf(Float32Array.of(0, 1, -Infinity, 2, NaN, 5, 0, 0, 0, 0, 0, 0)) } });
  const slice = new TensorSlice(pass, "blocks.0.attn.hook_pattern", { head: 0 });
  const found = slice.statistics;
  assert.deepEqual([found.mean, found.spread, found.counted], [2, Math.sqrt((4 + 1 + 0 + 9) / 4), 4]);
  assert.deepEqual(found.largest, { value: 5, cell: { row: 1, column: 2 } });
  assert.deepEqual(found.smallest, { value: 0, cell: { row: 0, column: 0 } });
  const { counts } = slice.histogram(found);
  assert.equal(counts.reduce((sum, each) => sum + each, 0), 4);
  assert.deepEqual([counts[0], counts.at(-1)], [1, 1]);
  const flat = new TensorSlice(pass, "blocks.0.attn.hook_pattern", { head: 1 });
  assert.deepEqual([...flat.histogram(flat.statistics).counts], [6]);
});

test("names are found by any parts of them, the nearest first and else in the order of the pass", () => {
  const names = ["hook_embed", "blocks.0.attn.hook_q", "blocks.1.attn.hook_q", "blocks.1.attn.qkv.weight", "logits"];
  assert.deepEqual(matching(names, ""), names);
  assert.deepEqual(matching(names, "HOOK_Q 1"), ["blocks.1.attn.hook_q"]);
  assert.deepEqual(matching(names, "q"), ["blocks.0.attn.hook_q", "blocks.1.attn.hook_q", "blocks.1.attn.qkv.weight"]);
  assert.equal(matching(names, "logits")[0], "logits");
  assert.deepEqual(matching(names, "nothing"), []);
  assert.deepEqual(matching(names, "1 queries", (name) => (name.endsWith("_q") ? "queries" : "")), ["blocks.1.attn.hook_q"]);
  assert.deepEqual(names[0], "hook_embed"); // the list itself stays as it was
});

test("small numbers keep their digits", () => {
  assert.equal(exactNumber(0.00096301), "0.00096301");
  assert.equal(exactNumber(-0.00096301), "−0.00096301");
  assert.equal(exactNumber(0.000000123456), "1.2346 × 10⁻⁷");
  assert.equal(exactNumber(-Infinity), "−∞");
  assert.equal(exactNumber(0), "0");
  assert.equal(exactNumber(12.3456789), "12.346");
});

test("of what a cell reads every cell is outlined, and nothing else", () => {
  const pass = new InsidePass(outline());
  pass.add({ metadata: {}, tensors: { "blocks.0.attn.hook_pattern": tensorOf(WHOLE), "blocks.0.attn.hook_v": tensorOf(Float32Array.from({ length: 12 }, (_, at) => at)) } });
  const found = inputsOf(pass, "blocks.0.attn.hook_z", [1, 1, 0], (name, fixed) => new TensorSlice(pass, name, fixed));
  assert.deepEqual(found.map(({ name }) => name), ["blocks.0.attn.hook_pattern", "blocks.0.attn.hook_v"]);
  const [weights, values] = found;
  assert.deepEqual([weights.slice.fixed, weights.read], [{ head: 1 }, [{ rows: [1, 2], columns: [0, 3] }]]); // the query's row of the head
  assert.deepEqual([values.slice.fixed, values.read], [{ head: 1 }, [{ rows: [0, 3], columns: [0, 1] }]]); // the dimension of every key
  const read = pass.operands("blocks.0.attn.hook_z").map((operand) => pass.reads("blocks.0.attn.hook_z", [1, 1, 0], operand));
  found.forEach(({ slice, read: [{ rows, columns }] }, which) => {
    const places = new Set(Array.from({ length: read[which].length }, (_, at) => String(read[which].at(at))));
    for (let row = 0; row < slice.rows; row++) for (let column = 0; column < slice.columns; column++) {
      const isOutlined = row >= rows[0] && row < rows[1] && column >= columns[0] && column < columns[1];
      assert.equal(isOutlined, places.has(String(slice.indexOf({ row, column }))));
    }
  });
});

test("of the cells that share a pixel the strongest is drawn; only where all are hidden there is nothing", () => {
  const row = Float32Array.from({ length: 96 }, (_, at) => [0, 1, -Infinity, -Infinity][at % 4]);
  const drawn = (kind) => [...pooled({ dims: ["query", "key"], sizes: [1, 96], data: row }, kind).bytes.subarray(0, 2)];
  assert.deepEqual(drawn("weights"), [254, HIDDEN]);
  assert.deepEqual(drawn("scores"), [254, HIDDEN]);
});

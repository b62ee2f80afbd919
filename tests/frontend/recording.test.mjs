// Reads what Python wrote, and refuses what is no recording. HEADSUP_FIXTURES: where tests/pages/test_frontend_modules.py
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readRecording } from "../../transformer/frontend/recording.js";

const written = readFileSync(join(process.env.HEADSUP_FIXTURES, "recording.safetensors"));
const bytes = new Uint8Array(written);

/** The bytes of a safetensors file with this header (text, or what becomes JSON) and body. */
function file(header, body = [], length = null) {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const made = new Uint8Array(8 + text.length + body.length);
  new DataView(made.buffer).setBigUint64(0, BigInt(length ?? text.length), true);
  made.set(text, 8);
  made.set(body, 8 + text.length);
  return made;
}

test("numbers, shapes and metadata are those that Python wrote", () => {
  const { metadata, tensors } = readRecording(bytes);
  assert.deepEqual(metadata, { labels: ["␣", "ñ", "<b>"], depth: { layers: 2 } });
  assert.deepEqual(Object.keys(tensors).sort(), ["blocks.0.hook_resid_pre[3]", "empty", "halves", "ids", "one", "seen", "weights"]);
  const floats = tensors["blocks.0.hook_resid_pre[3]"];
  assert.ok(floats.data instanceof Float32Array);
  assert.deepEqual(floats.shape, [2, 3]);
  assert.deepEqual([...floats.data], [0, -0.5, 1.5, Math.fround(1e-7), -Infinity, NaN]);
  assert.deepEqual([...tensors.halves.data], [0, 1, -2.5, 65504, 2 ** -24, 2 ** -14, -Infinity, NaN]);
  const short = file({ x: { dtype: "BF16", shape: [3], data_offsets: [0, 6] } }, [0x80, 0x3f, 0x20, 0xc0, 0x80, 0x7f]);
  assert.deepEqual([...readRecording(short).tensors.x.data], [1, -2.5, Infinity]);
  assert.deepEqual([tensors.ids.shape, [...tensors.ids.data]], [[2], [-1, 2 ** 31 - 1]]);
  assert.ok(tensors.ids.data instanceof Int32Array);
  assert.deepEqual([tensors.weights.shape, [...tensors.weights.data]], [[3, 1], [0, 254, 255]]);
  assert.deepEqual([tensors.seen.shape, [...tensors.seen.data]], [[3], [1, 0, 1]]);
  assert.deepEqual([tensors.empty.shape, tensors.empty.data.length], [[0, 4], 0]);
  assert.deepEqual([tensors.one.shape, [...tensors.one.data]], [[], [7]]);
});

test("bytes that begin anywhere in a buffer give the same numbers", () => {
  const expected = readRecording(bytes);
  assert.deepEqual(readRecording(bytes.buffer), expected);
  for (let shift = 1; shift < 8; shift++) {
    const shifted = new Uint8Array(bytes.length + shift);
    shifted.set(bytes, shift);
    assert.deepEqual(readRecording(shifted.subarray(shift)), expected);
  }
});

test("names that objects have anyway are names like any other", () => {
  const tensor = { dtype: "U8", shape: [1], data_offsets: [0, 1] };
  const header = `{"__proto__": ${JSON.stringify(tensor)}, "constructor": ${JSON.stringify(tensor)}}`;
  const { tensors } = readRecording(file(header, [9]));
  assert.deepEqual(Object.keys(tensors), ["__proto__", "constructor"]);
  assert.equal(Object.getPrototypeOf(tensors), Object.prototype);
});

const floats = (changes) => file({ x: { dtype: "F32", shape: [1], data_offsets: [0, 4], ...changes } }, [0, 0, 0, 0]);
/** @type {Record<string, [Uint8Array, RegExp]>} */
const REFUSED = {
  "too short": [new Uint8Array(7), /at least 8 bytes; these are 7/],
  "a header that ends too late": [file("{}", [], 99), /should have 99 bytes; only 2 are there/],
  "an enormous header": [file("{}", [], "18446744073709551615"), /should have/],
  "a header that is no JSON": [file("nothing"), /its header isn't JSON/],
  "a header that is no table": [file("[1]"), /no table of tensors/],
  "metadata that is no table": [file({ __metadata__: "labels" }), /no table of tensors/],
  "metadata that is no JSON": [file({ __metadata__: { labels: "a, b" } }), /its metadata “labels” isn't JSON/],
  "a type that isn't read": [floats({ dtype: "I64" }), /tensor x is of type I64; float64, float32, float16, bfloat16, int32, uint8 and bool/],
  "a type that objects have anyway": [floats({ dtype: "constructor" }), /is of type constructor/],
  "no tensor at all": [file({ x: null }), /is of type undefined/],
  "a negative length": [floats({ shape: [-1] }), /no shape or no place/],
  "no place": [floats({ data_offsets: [0] }), /no shape or no place/],
  "a shape that needs more bytes": [floats({ shape: [3] }), /of shape 3 needs 12 bytes; it has 4/],
  "a place beyond the end": [floats({ data_offsets: [4, 8] }), /ends at byte 8; the recording has 4/],
};
for (const [what, [content, words]] of Object.entries(REFUSED)) {
  test(`${what} is refused in words`, () => assert.throws(() => readRecording(content), words));
}

test("whatever is cut off is refused in words", () => {
  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => readRecording(bytes.subarray(0, length)), /recording/);
  }
});

// What is known of a text, message by message.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Story } from "../../transformer/frontend/writing/story.js";

const DIALS = { temperature: 1, top_k: 0, top_p: 1, seed: 1 };

/** A message with the tokens `ids` from a place on, of a vocabulary of three. */
function message(first, ids, more = {}, tensors = {}) {
  const floats = (values) => ({ shape: [values.length], data: Float32Array.from(values) });
  const ints = (values) => ({ shape: [values.length], data: Int32Array.from(values) });
  return {
    metadata: {
      id: "text", branch: 1, first, whole: false, ended: false, kinds: {}, points: ids.map(() => 0.5), dials: [DIALS], rows_of: ["self", 0, 1], ...more,
    },
    tensors: {
      ids: ints(ids), probability: floats(ids.map(() => 0.25)), rank: ints(ids.map(() => 1)), entropy: floats(ids.map(() => 1)),
      picked: { shape: [ids.length], data: Uint8Array.from(ids.map(() => 0)) }, dial: ints(ids.map(() => 0)),
      logits: { shape: [ids.length, 3], data: Float32Array.from(ids.flatMap((id) => [id, 0, 1])) },
      rows: floats(ids.flatMap((_, at) => Array(first + at).fill(first + at))), row_place: ints(ids.map((_, at) => first + at)),
      row_start: ints(ids.map(() => 0)), row_length: ints(ids.map((_, at) => first + at)), ...tensors,
    },
  };
}

const KINDS = { 0: ["a", "a"], 1: ["␣", " "], 2: ["▁c", " c", "c"] };
const whole = (ids, more = {}) => message(2, ids, { whole: true, prompt: { source: [], text: [0, 1] }, kinds: KINDS, ...more });
const idsOf = (story) => story.tokens.map(({ id }) => id);

test("tokens are added where they belong, and replace what was drawn otherwise", () => {
  const story = new Story();
  assert.ok(story.take(whole([0, 1])));
  assert.ok(story.take(message(4, [2, 0])));
  assert.deepEqual([idsOf(story), story.have], [[0, 1, 2, 0], 6]);
  assert.ok(story.take(message(3, [2])));
  assert.deepEqual([idsOf(story), story.have], [[0, 2], 4]);
  assert.ok(story.take(message(4, [])), "a message without tokens changes none");
  assert.deepEqual(idsOf(story), [0, 2]);
});

test("a gap, another text and another branch have to come whole", () => {
  const story = new Story();
  assert.ok(!story.take(message(2, [0])));
  assert.ok(story.take(whole([0])));
  assert.ok(!story.take(message(4, [0])));
  assert.ok(!story.take(message(3, [0], { branch: 2 })));
  assert.ok(!story.take(message(3, [0], { id: "other" })));
  assert.deepEqual(idsOf(story), [0]);
  assert.ok(story.take(whole([2, 2], { branch: 2 })));
  assert.deepEqual(idsOf(story), [2, 2]);
});

test("rows are known by head and place, and go with the tokens that they looked at", () => {
  const story = new Story();
  story.take(whole([0, 1, 2]));
  assert.deepEqual([...story.row(["self", 0, 1], 3).weights], [3, 3, 3]);
  assert.equal(story.row(["self", 0, 0], 3), null);
  story.take(message(3, [2]));
  assert.ok(story.row(["self", 0, 1], 3), "it looked at what came before");
  assert.equal(story.row(["self", 0, 1], 4), null);
});

test("an index counts the source, a place doesn't; cross-attention looks at the source", () => {
  const story = new Story();
  story.take(message(1, [2], { whole: true, prompt: { source: [2, 1, 2], text: [1] }, kinds: KINDS, start_label: " → " }));
  assert.equal(story.before, 3);
  assert.deepEqual([0, 1, 2, 3, 4].map((index) => story.at(index).shown), ["c", " ", " c", " → ", "c"]);
  assert.equal(story.token(1), story.at(4));
  assert.equal(story.row(["self", 0, 1], 1).start, 3);
  const cross = { ...message(2, []), tensors: message(1, [2]).tensors };
  story.take({ ...cross, metadata: { ...cross.metadata, first: 1, rows_of: ["cross", 0, 0] } });
  assert.equal(story.row(["cross", 0, 0], 1).start, 0);
});

test("the likeliest are those of the logits, or of the part of them that came", () => {
  const story = new Story();
  story.take(whole([2]));
  assert.deepEqual(story.likeliest(2, 2).map(({ id }) => id), [0, 2]);
  assert.ok(Math.abs(story.likeliest(2, 3).reduce((sum, { probability }) => sum + probability, 0) - 1) < 1e-12);
  const top = {
    logits: undefined, top_ids: { shape: [1, 2], data: Int32Array.from([900, 7]) },
    top_logits: { shape: [1, 2], data: Float32Array.from([3, 1]) }, normaliser: { shape: [1], data: Float32Array.from([4]) },
  };
  story.take(message(3, [7], {}, top));
  assert.deepEqual(story.likeliest(3, 2).map(({ id }) => id), [900, 7]);
  assert.equal(story.logits(3), null);
  story.take(message(4, [], { logits_place: 3 }, { logits_at: { shape: [3], data: Float32Array.from([1, 2, 3]) } }));
  assert.deepEqual([...story.logits(3)], [1, 2, 3]);
});

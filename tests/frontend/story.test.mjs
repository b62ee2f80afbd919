// What is known of a text, as the engine tells of it token by token.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Story } from "../../transformer/frontend/writing/story.js";

const DIALS = { temperature: 1, top_k: 0, top_p: 1, seed: 1 };
const KINDS = { 0: ["a", "a"], 1: ["␣", " "], 2: ["▁c", " c", "c"] };
const SELF = ["self", 0, 1];

const tensorOf = (values, ...shape) => ({ shape: shape.length ? shape : [values.length], data: Float32Array.from(values) });
const ints = (values) => ({ shape: [values.length], data: Int32Array.from(values) });
const idsOf = (story) => story.tokens.map(({ id }) => id);

/** The bytes of floats, as a stream has them. */
const encoded = (values) => Buffer.from(Float32Array.from(values).buffer).toString("base64");

/** A token that comes at a position, with the row of a head: its position, at each place before. */
function told(id, position, more = {}) {
  return {
    id, probability: 0.25, rank: 1, entropy: 1, point: 0.5, window_start: 0, kinds: KINDS, position,
    row: encoded(Array(position).fill(position)), row_start: 0, logits: encoded([id, 0, 1]), ...more,
  };
}

function written(ids, about = {}) {
  const story = new Story({ prompt: [0, 1], ...about });
  for (const id of ids) story.add(told(id, story.have), DIALS, SELF);
  return story;
}

/** What the engine thought of the tokens from a place on, of a vocabulary of three. drawn: at each of them. */
function scores(first, drawn, more = {}) {
  const each = (value) => tensorOf(drawn.map(() => value));
  return {
    metadata: { first, kinds: KINDS },
    tensors: {
      drawn: ints(drawn), points: each(0.5), probability: each(0.125), rank: each(2), entropy: each(1), window_start: each(0),
      logits: tensorOf(drawn.flatMap((id) => [id, 0, 1]), drawn.length, 3), ...more,
    },
  };
}

test("tokens come one after the other, and those ahead can be taken away", () => {
  const story = written([0, 1, 2, 0]);
  assert.deepEqual([idsOf(story), story.have, story.idsUpTo(4)], [[0, 1, 2, 0], 6, [0, 1, 0, 1]]);
  story.dropAhead(4);
  assert.deepEqual([idsOf(story), story.have], [[0, 1], 4]);
  assert.deepEqual([...story.logits(4)], [2, 0, 1], "what is known of the next place stays");
  story.add(told(1, 4), DIALS, SELF);
  assert.deepEqual([...story.logits(4)], [1, 0, 1]);
});

test("the token that ends a text ends it", () => {
  assert.ok(written([0, 2], { end: 2 }).ended);
  assert.ok(!written([2, 0], { end: 2 }).ended);
  assert.ok(!written([2], { end: null }).ended);
});

test("scores are of tokens that are there; the next is drawn where it may be, and else known", () => {
  const story = written([0, 1]);
  story.tree.current.tokens[0] = { id: 0, flag: "u" };
  story.tree.current.tokens[1] = { id: 1, flag: "u" };
  story.addScores(scores(2, [0, 2, 1]), DIALS, false);
  assert.deepEqual(story.tokens.map(({ flag, probability }) => [flag, probability]), [["w", 0.125], ["u", 0.125]], "the dials lead to the first alone");
  assert.deepEqual([idsOf(story), [...story.logits(4)]], [[0, 1], [1, 0, 1]]);
  story.addScores(scores(2, [0, 2, 1]), DIALS, true);
  assert.deepEqual(idsOf(story), [0, 1, 1]);
});

test("rows are known by head and place, and go with the tokens that they looked at", () => {
  const story = written([0, 1, 2]);
  assert.deepEqual([...story.row(SELF, 3).weights], [3, 3, 3]);
  assert.equal(story.row(["self", 0, 0], 3), null);
  story.addRows(["self", 0, 0], { rows: tensorOf([1, 1, 1, 2, 2, 2, 2]), place: ints([3, 4]), start: ints([0, 0]), length: ints([3, 4]) });
  assert.deepEqual([...story.row(["self", 0, 0], 4).weights], [2, 2, 2, 2]);
  story.dropAhead(3);
  assert.ok(story.row(SELF, 3), "it looked at what came before");
  assert.equal(story.row(SELF, 4), null);
  assert.equal(story.row(["self", 0, 0], 4), null);
});

test("an index counts the source, a place doesn't; cross-attention looks at the source", () => {
  const story = new Story({ prompt: [1], source: [2, 1, 2], arrow: " → " });
  story.add(told(2, 1), DIALS, SELF);
  story.name();
  assert.equal(story.before, 3);
  assert.deepEqual([0, 1, 2, 3, 4].map((index) => story.at(index).shown), ["c", " ", " c", " → ", "c"]);
  assert.equal(story.token(1), story.at(4));
  assert.equal(story.row(SELF, 1).start, 3);
  const cross = ["cross", 0, 0];
  story.addRows(cross, { rows: tensorOf([1, 2, 3]), place: ints([1]), start: ints([0]), length: ints([3]) });
  assert.equal(story.row(cross, 1).start, 0);
});

test("a token that is chosen by hand has its probability and rank, as far as they are known", () => {
  const story = written([2]);
  const { flag, probability, rank } = story.picked(2, 1);
  assert.deepEqual([flag, rank], ["h", 3]);
  assert.ok(Math.abs(probability - 1 / (Math.exp(2) + 1 + Math.E)) < 1e-12);
  assert.deepEqual([story.picked(3, 1).probability, story.picked(3, 1).rank], [NaN, NaN]);
});

test("the likeliest are those of the logits, or of the part of them that came", () => {
  const story = written([2]);
  assert.deepEqual(story.likeliest(2, 2).map(({ id }) => id), [0, 2]);
  assert.ok(Math.abs(story.likeliest(2, 3).reduce((sum, { probability }) => sum + probability, 0) - 1) < 1e-12);
  story.add(told(7, 3, { logits: undefined, top: { ids: [900, 7], logits: encoded([3, 1]), normaliser: 4 } }), DIALS, SELF);
  assert.deepEqual(story.likeliest(3, 2).map(({ id }) => id), [900, 7]);
  assert.equal(story.logits(3), null);
  story.whole.set(3, Float32Array.from([1, 2, 3]));
  assert.deepEqual([...story.logits(3)], [1, 2, 3]);
  story.dropAhead(3);
  assert.equal(story.whole.has(3), true, "they don't depend on the token");
  story.dropAhead(2);
  assert.equal(story.whole.has(3), false);
});

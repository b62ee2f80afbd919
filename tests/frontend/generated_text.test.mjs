// What is known of a text, token by token as the engine's stream has them, or from its scores.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GeneratedText } from "../../transformer/frontend/writing/generated_text.js";

const DIALS = { temperature: 1, top_k: 0, top_p: 1, seed: 1 };
const OTHER = { ...DIALS, temperature: 0 };
const HEAD = ["self", 0, 1];
const packed = (values) => Buffer.from(Float32Array.from(values).buffer).toString("base64");
const KINDS = { 0: ["a", "a"], 1: ["␣", " "], 2: ["▁c", " c", "c"] };

/** A story of a prompt of two tokens, and a vocabulary of three. */
function begun(about = {}) {
  const story = new GeneratedText({ prompt: [0, 1], source: [], ends: [], ...about });
  story.learn(KINDS);
  story.name();
  return story;
}

/** What the stream tells of a token at a place. */
function told(id, position, more = {}) {
  return {
    id, position, probability: 0.25, rank: 1, entropy: 1, point: 0.5, window_start: 0, logits: packed([id, 0, 1]),
    row: packed(Array(position).fill(position)), row_start: 0, ...more,
  };
}

/** What scores say of a text of these tokens from a place on; drawn: what the dials lead to there. */
function scores(first, drawn) {
  const of = (kind, values, columns) => ({ shape: columns ? [values.length / columns, columns] : [values.length], data: kind.from(values) });
  const each = (value) => of(Float32Array, drawn.map(() => value));
  return {
    metadata: { first, kinds: KINDS },
    tensors: {
      drawn: of(Int32Array, drawn), points: of(Float64Array, drawn.map(() => 0.5)), probability: each(0.25), rank: of(Int32Array, drawn.map(() => 1)),
      entropy: each(1), window_start: of(Int32Array, drawn.map(() => 0)), logits: of(Float32Array, drawn.flatMap((id) => [id, 0, 1]), 3),
    },
  };
}

const idsOf = (story) => story.tokens.map(({ id }) => id);

test("tokens come one after another, named and with what is known of them", () => {
  const story = begun();
  story.add(told(0, 2), DIALS, HEAD);
  story.add(told(2, 3), DIALS, HEAD);
  assert.deepEqual([idsOf(story), story.have, story.idsUpTo(3)], [[0, 2], 4, [0, 1, 0]]);
  const { label, shown, probability, dials, flag } = story.token(3);
  assert.deepEqual({ label, shown, probability, dials, flag }, { label: "▁c", shown: " c", probability: 0.25, dials: DIALS, flag: "w" });
  assert.deepEqual([...story.logits(3)], [2, 0, 1]);
});

test("rows are known by head and place, and go with the tokens that they looked at", () => {
  const story = begun();
  [0, 1, 2].forEach((id, at) => story.add(told(id, 2 + at), DIALS, HEAD));
  assert.deepEqual([...story.row(HEAD, 3).weights], [3, 3, 3]);
  assert.equal(story.row(["self", 0, 0], 3), null);
  story.dropAhead(3);
  assert.deepEqual(idsOf(story), [0]);
  assert.ok(story.row(HEAD, 3), "it looked at what came before");
  assert.equal(story.row(HEAD, 4), null);
  assert.deepEqual([...story.logits(3)], [1, 0, 1], "what is known of the place after the text stays");
});

test("an index counts the source, a place doesn't; cross-attention looks at the source", () => {
  const story = begun({ prompt: [1], source: [2, 1, 2], arrow: " → " });
  story.add(told(2, 1), DIALS, HEAD);
  assert.equal(story.before, 3);
  assert.deepEqual([0, 1, 2, 3, 4].map((index) => story.at(index).shown), ["c", " ", " c", " → ", "c"]);
  assert.equal(story.token(1), story.at(4));
  assert.equal(story.row(HEAD, 1).start, 3);
  story.rowsOf(["cross", 0, 0]).set(1, { start: 0, weights: [1] });
  assert.equal(story.row(["cross", 0, 0], 1).start, 0);
});

test("the likeliest are those of the logits, or of the part of them that came", () => {
  const story = begun();
  story.add(told(2, 2), DIALS, null);
  assert.deepEqual(story.likeliest(2, 2).map(({ id }) => id), [0, 2]);
  assert.ok(Math.abs(story.likeliest(2, 3).reduce((sum, { probability }) => sum + probability, 0) - 1) < 1e-12);
  story.add(told(7, 3, { logits: undefined, top: { ids: [900, 7], logits: packed([3, 1]), normaliser: 4 } }), DIALS, null);
  assert.deepEqual(story.likeliest(3, 2).map(({ id }) => id), [900, 7]);
  assert.deepEqual(story.statistics(3, 7), [Math.exp(-3), 2]);
  assert.deepEqual(story.statistics(3, 5), [NaN, NaN]);
  assert.equal(story.logits(3), null);
  story.whole.set(3, [1, 2, 3]);
  assert.deepEqual(story.logits(3), [1, 2, 3]);
});

test("of a text of an address it is known how a token came about only where the dials lead to it", () => {
  const story = begun();
  story.tree.restore([0, 2]);
  story.addScores(scores(2, [0, 1, 1]), DIALS, true);
  assert.deepEqual(idsOf(story), [0, 2, 1], "and the next is drawn");
  assert.deepEqual(story.tokens.map(({ flag, dials, point }) => [flag, dials, point]), [["w", DIALS, 0.5], ["u", undefined, undefined], ["w", DIALS, 0.5]]);
  assert.ok(story.tokens.every(({ probability }) => probability === 0.25));
});

test("where none may be drawn the next place is known, and no token is there", () => {
  const story = begun();
  story.tree.restore([0]);
  story.addScores(scores(2, [0, 1]), DIALS, false);
  assert.deepEqual([idsOf(story), [...story.logits(3)]], [[0], [1, 0, 1]]);
  assert.equal(story.picked(3, 2).flag, "h");
  assert.equal(story.picked(3, 2).rank, 2);
});

test("what a token was drawn by stays with it when dials are turned", () => {
  const story = begun();
  story.add(told(0, 2), DIALS, HEAD);
  story.add(told(0, 3), OTHER, HEAD);
  assert.deepEqual(story.tokens.map(({ dials }) => dials), [DIALS, OTHER]);
});

test("a text ends with the token that says so", () => {
  const story = begun({ ends: [2] });
  story.add(told(0, 2), DIALS, null);
  assert.ok(!story.ended);
  story.add(told(2, 3), DIALS, null);
  assert.ok(story.ended);
  assert.ok(!begun().ended);
});

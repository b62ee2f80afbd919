// Tests what is known of a text's tokens, from the engine's stream or from its scores.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GeneratedText } from "../../transformer/frontend/generation/generated_text.js";
import { lookedAt } from "../../transformer/frontend/generation/token_descriptions.js";

const SETTINGS = { temperature: 1, top_k: 0, top_p: 1, seed: 1 };
const HEAD = ["self", 0, 1];
const KINDS = { 0: ["a", "a"], 1: ["␣", " "], 2: ["▁c", " c", "c"] };

/** A generated text of a prompt of two tokens, and a vocabulary of three. */
function begun(about = {}) {
  const generated = new GeneratedText({ prompt: [0, 1], source: [], ends: [], ...about });
  generated.learn(KINDS);
  generated.name();
  return generated;
}

/** What the stream tells of a token at a place. */
function told(id, position, more = {}) {
  return {
    id, position, probability: 0.25, rank: 1, entropy: 1, point: 0.5, window_start: 0, logits: Float32Array.from([id, 0, 1]),
    row: Float32Array.from(Array(position).fill(position)), row_start: 0, ...more,
  };
}

/** What scores say of a text of these tokens from a place on; drawn: what the settings lead to there. */
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

const idsOf = (generated) => generated.tokens.map(({ id }) => id);

test("tokens come one after another, named and with what is known of them", () => {
  const generated = begun();
  generated.add(told(0, 2), SETTINGS, HEAD);
  generated.add(told(2, 3), SETTINGS, HEAD);
  assert.deepEqual([idsOf(generated), generated.have, generated.idsUpTo(3)], [[0, 2], 4, [0, 1, 0]]);
  const { label, shown, probability, settings, flag } = generated.token(3);
  assert.deepEqual({ label, shown, probability, settings, flag }, { label: "▁c", shown: " c", probability: 0.25, settings: SETTINGS, flag: "w" });
  assert.deepEqual([...generated.logits(3)], [2, 0, 1]);
});

test("rows are known by head and place, and go with the tokens that they looked at", () => {
  const generated = begun();
  [0, 1, 2].forEach((id, at) => generated.add(told(id, 2 + at), SETTINGS, HEAD));
  assert.deepEqual([...generated.row(HEAD, 3).weights], [3, 3, 3]);
  assert.equal(generated.row(["self", 0, 0], 3), null);
  generated.dropAhead(3);
  assert.deepEqual(idsOf(generated), [0]);
  assert.ok(generated.row(HEAD, 3), "it looked at what came before");
  assert.equal(generated.row(HEAD, 4), null);
  assert.deepEqual([...generated.logits(3)], [1, 0, 1], "what is known of the place after the text stays");
});

test("an index counts the source, a place doesn't; cross-attention looks at the source", () => {
  const generated = begun({ prompt: [1], source: [2, 1, 2], arrow: " → " });
  generated.add(told(2, 1), SETTINGS, HEAD);
  assert.equal(generated.before, 3);
  assert.deepEqual([0, 1, 2, 3, 4].map((index) => generated.at(index).shown), ["c", " ", " c", " → ", "c"]);
  assert.equal(generated.token(1), generated.at(4));
  assert.equal(generated.row(HEAD, 1).start, 3);
  generated.rowsOf(["cross", 0, 0]).set(1, { start: 0, weights: [1] });
  assert.equal(generated.row(["cross", 0, 0], 1).start, 0);
});

test("the likeliest are those of the logits, or of the part of them that came", () => {
  const generated = begun();
  generated.add(told(2, 2), SETTINGS, null);
  assert.deepEqual(generated.likeliest(2, 2).map(({ id }) => id), [0, 2]);
  assert.ok(Math.abs(generated.likeliest(2, 3).reduce((sum, { probability }) => sum + probability, 0) - 1) < 1e-12);
  generated.add(told(7, 3, { logits: undefined, top: { ids: [900, 7], logits: Float32Array.from([3, 1]), normaliser: 4 } }), SETTINGS, null);
  assert.deepEqual(generated.likeliest(3, 2).map(({ id }) => id), [900, 7]);
  assert.deepEqual(generated.statistics(3, 7), [Math.exp(-3), 2]);
  assert.deepEqual(generated.statistics(3, 5), [NaN, NaN]);
  assert.equal(generated.logits(3), null);
  generated.whole.set(3, [1, 2, 3]);
  assert.deepEqual(generated.logits(3), [1, 2, 3]);
});

test("of a text of an address it is known how a token came about only where the settings lead to it", () => {
  const generated = begun();
  generated.tree.restore([0, 2]);
  generated.addScores(scores(2, [0, 1, 1]), SETTINGS, true);
  assert.deepEqual(idsOf(generated), [0, 2, 1], "and the next is drawn");
  assert.deepEqual(generated.tokens.map(({ flag, settings, point }) => [flag, settings, point]), [["w", SETTINGS, 0.5], ["u", undefined, undefined], ["w", SETTINGS, 0.5]]);
  assert.ok(generated.tokens.every(({ probability }) => probability === 0.25));
});

test("where none may be drawn the next place is known, and no token is there", () => {
  const generated = begun();
  generated.tree.restore([0]);
  generated.addScores(scores(2, [0, 1]), SETTINGS, false);
  assert.deepEqual([idsOf(generated), [...generated.logits(3)]], [[0], [1, 0, 1]]);
  assert.equal(generated.picked(3, 2).flag, "h");
  assert.equal(generated.picked(3, 2).rank, 2);
});

test("a text ends with the token that says so", () => {
  const generated = begun({ ends: [2] });
  generated.add(told(0, 2), SETTINGS, null);
  assert.ok(!generated.ended);
  generated.add(told(2, 3), SETTINGS, null);
  assert.ok(generated.ended);
  assert.ok(!begun().ended);
});

test("what was predicted in the prompt is known once it was asked for, and stays with every branch", () => {
  const generated = begun();
  generated.add(told(0, 2), SETTINGS, HEAD);
  assert.equal(generated.known(1), null);
  generated.addPromptScores(scores(1, [2, 0]));
  assert.deepEqual([...generated.logits(1)], [2, 0, 1]);
  assert.deepEqual([generated.known(1).probability, generated.known(2).probability, generated.idsUpTo(1)], [0.25, 0.25, [0]]);
  generated.dropAhead(2);
  assert.equal(generated.known(1).rank, 1);
});

test("of a token of the source it is said for which generated token it was looked at most", () => {
  const generated = begun({ prompt: [0], source: [1, 2] });
  [0, 1].forEach((id, at) => generated.add(told(id, 1 + at, { row: Float32Array.from([0.2, at ? 0.7 : 0.4]) }), SETTINGS, ["cross", 0, 1]));
  const look = lookedAt(generated, ["cross", 0, 1], 1, 3);
  assert.deepEqual([0, 3, 4].map((index) => look.weight(index) && look.weight(index).toFixed(1)), [null, "0.4", "0.7"]);
  assert.match(look.summary, /source token 1 .* is looked at most to predict token 2 .*, 70%/);
  assert.equal(lookedAt(generated, ["decoder", 0, 1], 1, 3), null);
});

// Tests the questions of lessons: what is right, how it is said, and what a student can do at a step.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inWords, isRight, numberInWords, verdict, withAnswer } from "../../transformer/frontend/lessons/questions.js";
import { ALONE, buttonsOf, said, stateOf } from "../../transformer/frontend/lessons/step.js";

const picture = { queries: ["a", "b"], keys: ["c", "d"], begin: [4, 2], causal: true, label: "" };
const kinds = {
  choose: { kind: "choose", options: ["<b>one</b>", "two"], right: 1, correct: "“two”" },
  number: { kind: "number", low: 0, high: 1, step: 0.1, near: 0.1, unit: "nats", right: 0.3, correct: "0.3 nats" },
  token: { kind: "token", options: ["a", "<"], right: [1], correct: "<code>&lt;</code> at position 1" },
  cell: { kind: "cell", picture, right: [5, 3], correct: "<code>b</code> (5) looks at <code>d</code> (3)" },
  order: { kind: "order", options: ["x", "y", "z"], right: [2, 0, 0], correct: "y → z → x" },
};
const question = (kind, more = {}) => ({ text: "", options: [], later: "", problem: "", ...kinds[kind], ...more });
const step = (asked) => ({ title: "", words: "", question: asked, reveal: "", toTry: "", problems: "" });
const answered = (first, second = null, discussing = false) => ({ first, second, discussing });
const labels = (one, state, isChanging = false) => buttonsOf(one, state, isChanging).map(({ label }) => label);

for (const [kind, right, wrong] of [
  ["choose", [1], [0]],
  ["number", [0.3, 0.2, 0.4], [0.19, 0.41]],
  ["token", [1], [0]],
  ["cell", [[5, 3]], [[3, 5], [5, 2]]],
  ["order", [[1, 2, 0], [2, 1, 0]], [[0, 1, 2], [1, 0, 2]]],
]) test(`a right answer to a question of the kind ${kind} is told from a wrong one, and put into words`, () => {
  for (const answer of right) assert.ok(isRight(question(kind), answer), `${answer}`);
  for (const answer of wrong) {
    assert.ok(!isRight(question(kind), answer), `${answer}`);
    const { right: isCorrect, sentence } = verdict(question(kind), answered(answer));
    const end = kind === "order" ? "The correct order is above." : `Correct: ${kinds[kind].correct}.`;
    assert.deepEqual([isCorrect, sentence], [false, `Your answer: ${inWords(question(kind), answer)}. ${end}`]);
  }
});

test("an answer is said as people read it, and no token becomes an element", () => {
  assert.equal(inWords(question("token"), 1), "<code>&lt;</code> at position 1");
  assert.equal(inWords(question("token"), 9), "position 9");
  assert.equal(inWords(question("cell"), [5, 9]), "<code>b</code> (5) looks at another (9)");
  assert.equal(inWords(question("order"), [2, 0, 1]), "z → x → y");
  assert.deepEqual([numberInWords(0.5, "%"), numberInWords(3.0561, "nats"), numberInWords(-12345, "")], ["50%", "3.06 nats", "−12,345"]);
  assert.equal(verdict(question("number"), answered(0.4)).sentence, "Your answer: 0.4 nats. Correct: 0.3 nats, close enough.");
  assert.equal(verdict(question("choose"), answered(0, 1)).sentence, "Correct: “<b>one</b>”, then “two”.");
  assert.equal(verdict(question("choose"), null).sentence, "Correct: “two”.");
  assert.equal(verdict(question("choose", { right: null, later: "Not yet." }), answered(0)).sentence, "Your answer: “<b>one</b>”. Not yet.");
});

test("a first answer is kept beside a second, and a room's vote is changed in its own phase", () => {
  assert.deepEqual(withAnswer(null, 0, { discusses: true }), answered(0, null, true));
  assert.deepEqual(withAnswer(answered(0, null, true), 1), answered(0, 1));
  assert.deepEqual(withAnswer(answered(0, null, true), 0), answered(0));
  assert.deepEqual(withAnswer(answered(0), 1, { isChange: true }), answered(1));
  assert.deepEqual(withAnswer(answered(0, 1), 2, { isChange: true, isSecond: true }), answered(0, 2));
});

test("alone, an answer reveals; in a room its teacher does", () => {
  const asked = step(question("choose"));
  const at = (more) => ({ ...ALONE, ...more });
  assert.deepEqual(stateOf(step(null), ALONE), { isOpen: false, isRevealed: true });
  assert.deepEqual(stateOf(asked, ALONE), { isOpen: true, isRevealed: false });
  assert.deepEqual(labels(asked, ALONE), ["Answer", "Discuss first"]);
  assert.deepEqual(labels(asked, at({ answered: answered(0, null, true) })), ["Answer again", "Keep my answer"]);
  assert.deepEqual(labels(asked, at({ answered: answered(0) })), []);
  const waiting = at({ answered: answered(0), phase: "first", canChange: true });
  assert.deepEqual(stateOf(asked, waiting), { isOpen: false, isRevealed: false });
  assert.match(said(asked, waiting).sentence, /^Your answer: .* when your teacher reveals it\.$/);
  assert.deepEqual([labels(asked, waiting), labels(asked, waiting, true)], [["Change my answer"], ["Answer again", "Keep my answer"]]);
  assert.deepEqual(labels(asked, at({ phase: "second" })), ["Answer"]);
  assert.deepEqual(labels(asked, at({ phase: "first", isTeacher: true })), []);
  assert.deepEqual(stateOf(asked, at({ phase: "revealed" })), { isOpen: false, isRevealed: true });
  assert.deepEqual(labels(step(question("choose", { right: null, isComing: true })), at({ answered: answered(0) })), ["Check again"]);
  assert.deepEqual(labels(step(question("choose", { problem: "No model." })), ALONE), []);
});

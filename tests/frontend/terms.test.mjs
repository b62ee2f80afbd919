// Tests where the glossary's terms are found in a text, and what a search finds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { matcherOf, searched, termsIn } from "../../pages/ui/components/guide/terms.js";

const term = (name, { others = [], alone = [], meaning = "", code = "" } = {}) => ({ name, words: [name, ...others], alone, meaning, code });
const TERMS = [
  term("Head", { others: ["heads"], meaning: "One of several attentions." }), term("Attention", { others: ["self-attention"] }),
  term("Attention weight"), term("Query", { others: ["queries", "q"], alone: ["q"], code: "hook_q" }), term("Step", { alone: ["Step"] }),
  term("√d_head"), term("Probability"),
];
const matcher = matcherOf(TERMS);
const found = (text) => termsIn(text, matcher).map(({ term: { name }, start, end }) => [name, text.slice(start, end)]);

test("a term is found in any case and number, once, where it stands first", () => {
  assert.deepEqual(found("Heads look; each HEAD has queries."), [["Head", "Heads"], ["Query", "queries"]]);
  assert.deepEqual(found("The probabilities of all"), [["Probability", "probabilities"]]);
});

test("part of a word is no term, and the longest term counts", () => {
  assert.deepEqual(found("The headline, ahead; self-attention"), [["Attention", "self-attention"]]);
  assert.deepEqual(found("an attention  weight of 1"), [["Attention weight", "attention  weight"]]);
  assert.deepEqual(found("÷ √d_head"), [["√d_head", "√d_head"]]);
});

test("some words count only as the whole of a label, and never in running text", () => {
  const labelled = (text) => termsIn(text, matcher, text).map(({ term: { name }, start, end }) => [name, text.slice(start, end)]);
  assert.deepEqual(labelled("Step"), [["Step", "Step"]]);
  assert.deepEqual(labelled(" step: "), [["Step", "step:"]]);
  assert.deepEqual(labelled("q"), [["Query", "q"]]);
  assert.deepEqual(labelled("step by step with q"), []);
  assert.deepEqual(found("q"), []);
  assert.deepEqual(termsIn("q", matcher, "q 6 MB"), []);
});

test("what is quoted is nobody's term", () => {
  assert.deepEqual(found("There is no lesson “heads”; the head reads “query"), [["Head", "head"]]);
});

test("nothing is found where there is nothing, and by nobody who knows no term", () => {
  assert.deepEqual(found(""), []);
  assert.deepEqual(termsIn("a head", matcherOf([])), []);
});

test("a search finds words and names of the code first, then meanings", () => {
  const names = (query) => searched(TERMS, query).map(({ name }) => name);
  assert.deepEqual(names("attention"), ["Attention", "Attention weight", "Head"]);
  assert.deepEqual(names("hook_Q"), ["Query"]);
  assert.deepEqual(names("nowhere"), []);
  assert.equal(names("  ").length, TERMS.length);
});

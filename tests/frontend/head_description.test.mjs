// What is said of a token that was written, and of how many of something there are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inWords } from "../../transformer/frontend/attention/head_description.js";
import { chapterInWords } from "../../transformer/frontend/inside/descriptions.js";
import { counted } from "../../transformer/frontend/numbers.js";
import { resampledSentence } from "../../transformer/frontend/writing/resampled.js";

const DIALS = { temperature: 1, top_k: 0, top_p: 1, seed: 1 };

test("one of something is one", () => {
  assert.deepEqual([1, 2, 2000].map((count) => counted(count, "cell")), ["1 cell", "2 cells", "2,000 cells"]);
});

test("of a token whose choice wasn't kept it is said that it isn't known, wherever the text comes from", () => {
  const token = { id: 3, label: "x", flag: "u", dials: DIALS };
  const { words, token: offered } = resampledSentence({ token, drawn: 3, chosen: DIALS, isNext: false, isStale: false, label: String });
  assert.match(words, /^How “x” was chosen is unknown: links, reloads and changes to the model keep only the text\./);
  assert.equal(offered, undefined);
});

test("of a token that was chosen by hand nothing is said of a random number that isn't known", () => {
  const said = (point) => resampledSentence({
    token: { id: 3, label: "x", flag: "h", dials: DIALS, point }, drawn: 3, chosen: DIALS, isNext: false, isStale: false, label: String,
  }).words;
  assert.equal(said(0.5), "“x” was chosen by hand; the random number falls on it, too.");
  assert.equal(said(null), "“x” was chosen by hand; the random number isn't known.");
});

test("what a head hardly does isn't called what it does most", () => {
  const said = (value) => inWords([{ name: "first", sentence: "looks at the first token", value }, { name: "spread", value: 0.5 }]);
  assert.equal(said(0.2), "most often looks at the first token (20% on average over the text)");
  assert.equal(said(0.002), "does no single thing");
});

test("where all weights are alike, none is called the largest", () => {
  const said = (...row) => {
    const scene = { head: null, token: 1, weights: () => ({ queries: 2, keys: 2, weights: Float32Array.from([1, 0, ...row]) }) };
    const places = new Map([["pattern", { stack: { title: "" }, group: { title: "layer 0" }, part: { id: "blocks.0.attn" } }]]);
    const pass = { labels: { text: ["a", "b"] }, config: { n_heads: 1 } };
    const asked = { id: "blocks.0.attn", part: "attention", name: "pattern", zone: "lane", prefix: "" };
    return chapterInWords(pass, scene, { places, residual: true }, asked);
  };
  assert.equal(said(0.5, 0.5), "Layer 0, head 0: “b” looks equally at all 2 tokens it can see, 50% each.");
  assert.match(said(0.4, 0.6), /^Layer 0, head 0: “b” looks most at “b”/);
});

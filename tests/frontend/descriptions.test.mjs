// Tests how generated tokens and counts are described in words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formula, headInWords } from "../../transformer/frontend/attention/attention_description.js";
import { Pass } from "../../transformer/frontend/attention/pass.js";
import { chapterInWords, selectionInWords } from "../../transformer/frontend/inside/selection_description.js";
import { counted } from "../../transformer/frontend/number_format.js";
import { GeneratedText } from "../../transformer/frontend/generation/generated_text.js";
import { describe } from "../../transformer/frontend/generation/token_descriptions.js";
import { resampledSentence } from "../../transformer/frontend/generation/resampling.js";

const SETTINGS = { temperature: 1, top_k: 0, top_p: 1, seed: 1 };

test("of a word that the vocabulary lacks it is said which new one it is", () => {
  const generated = new GeneratedText({ prompt: [5, 3], newWords: ["Bo", "a\u00adb"] });
  generated.learn({ 5: ["aU+00ADb", "aU+00ADb"], 3: ["took", " took"] });
  generated.name();
  assert.deepEqual([0, 1].map((at) => describe(generated, at, null)[0]), ["token 0 “aU+00ADb”, id 5, from the prompt, new word 2", "token 1 “took”, id 3, from the prompt"]);
});

test("one of something is one", () => {
  assert.deepEqual([1, 2, 2000].map((count) => counted(count, "cell")), ["1 cell", "2 cells", "2,000 cells"]);
});

test("of a token whose choice wasn't kept it is said that it isn't known, wherever the text comes from", () => {
  const token = { id: 3, label: "x", flag: "u", settings: SETTINGS };
  const { words, token: offered } = resampledSentence({ token, drawn: 3, chosen: SETTINGS, isNext: false, isStale: false, label: String });
  assert.match(words, /^How “x” was chosen is unknown: links, reloads and changes to the model keep only the text\./);
  assert.equal(offered, undefined);
});

test("of a token that was chosen by hand nothing is said of a random number that isn't known", () => {
  const said = (point) => resampledSentence({
    token: { id: 3, label: "x", flag: "h", settings: SETTINGS, point }, drawn: 3, chosen: SETTINGS, isNext: false, isStale: false, label: String,
  }).words;
  assert.equal(said(0.5), "“x” was chosen by hand; the random number falls on it, too.");
  assert.equal(said(null), "“x” was chosen by hand; the random number isn't known.");
});

test("a head is said to do only what most of its weight does", () => {
  const said = (name, value) => headInWords([{ name, sentence: "looks there", value }, { name: "spread", value: 0.2 }]);
  assert.equal(said("first", 0.37), "On average over the text, it does none of these clearly.");
  assert.equal(said("first", 0.5), "It mostly looks there (50%).");
  assert.equal(said("same", 0.5), "Where a token occurs again, it mostly looks there (50%).");
});

test("a formula has a mask where some key is hidden: of an encoder in layers with a window alone", () => {
  const written = (causal, left = []) => {
    const metadata = {
      config: { n_heads: 1, d_model: 4, attention_windows: [3, 0, 9] }, labels: { text: [..."abcdefgh"] }, kind: "self", modules: ["0", "1", "2"], names: [{}, {}, {}],
      causal, uniform: false, measures: [], queries: 8, keys: 8, predicted_position: 2, offsets: { queries: 0, keys: 0 }, next: null, title: "",
    };
    const pass = new Pass({ metadata, tensors: { overview: { shape: [3, 1, 8, 8], data: new Uint8Array(192) }, measures: { shape: [3, 1, 0], data: new Float32Array() } } });
    return [0, 1, 2].map((layer) => formula(pass, layer, left).endsWith(" + mask)"));
  };
  assert.deepEqual(written(true), [true, true, true]);
  assert.deepEqual(written(true, ["mask"]), [false, false, false]);
  assert.deepEqual(written(false), [true, false, false]);
});

test("what a bias of positions adds grows with the distance, in either direction", () => {
  const metadata = {
    config: { n_heads: 2, d_model: 4 }, labels: { text: [..."abc"] }, kind: "self", modules: ["0"], names: [{}], causal: false, uniform: false, bias: { slopes: [0.5, 0.25] },
    measures: [], queries: 3, keys: 3, predicted_position: 2, offsets: { queries: 0, keys: 0 }, next: null, title: "",
  };
  const pass = new Pass({ metadata, tensors: { overview: { shape: [1, 2, 3, 3], data: new Uint8Array(18) }, measures: { shape: [1, 2, 0], data: new Float32Array() } } });
  const added = (head) => [[2, 0], [2, 1], [1, 2], [0, 2]].map(([query, key]) => pass.biasOf(0, head)(query, key));
  assert.deepEqual([added(0), added(1)], [[-1, -0.5, -0.5, -1], [-0.5, -0.25, -0.25, -0.5]]);
});

test("an encoder predicts the token at a position, others the next", () => {
  const said = (architecture) => selectionInWords({
    config: { n_heads: 1, architecture }, labels: { text: ["a", "b"] }, vocabulary: ["x"], describe: () => null,
    outline: { next: { data: [0, 0], shape: [2, 1] }, "next.probability": { data: [0.5, 0.25] } },
  }, { chosen: { cell: null }, focus: { part: { module: null } }, token: 1, scene: {}, structure: {} });
  assert.equal(said("encoder-only"), "Token 1 “b”: predicted here “x” 25%.");
  assert.equal(said("decoder-only"), "Token 1 “b”: predicted next “x” 25%.");
});

test("of a tensor its name and sizes are said, without what is always one", () => {
  const said = selectionInWords({ describe: () => ({ dims: ["query", "1", "d_head"], sizes: [3, 1, 8] }) }, {
    chosen: { cell: null }, focus: { name: "hook_embed", group: { kind: "embed" } }, token: 0, scene: {}, structure: { config: { n_heads: 1 } },
  });
  assert.match(said, /^[A-Z][^,]+, 3 queries × 8 \w+\.$/);
});

test("where all weights are alike, none is called the largest", () => {
  const said = (...row) => {
    const scene = { head: null, token: 1, isAblated: () => false, weights: () => ({ queries: 2, keys: 2, weights: Float32Array.from([1, 0, ...row]) }) };
    const locations = new Map([["pattern", { stack: { title: "" }, group: { title: "layer 0" }, part: { id: "blocks.0.attn" } }]]);
    const pass = { labels: { text: ["a", "b"] }, config: { n_heads: 1 } };
    const asked = { id: "blocks.0.attn", part: "attention", name: "pattern", zone: "lane", prefix: "" };
    return chapterInWords(pass, scene, { locations, residual: true }, asked);
  };
  assert.equal(said(0.5, 0.5), "Layer 0, head 0: “b” looks equally at all 2 tokens it can see, 50% each.");
  assert.match(said(0.4, 0.6), /^Layer 0, head 0: “b” looks most at “b”/);
});

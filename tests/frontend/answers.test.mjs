// Tests what a page asks of models over HTTP, and which texts it reads by itself.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ApiError } from "../../transformer/frontend/api_error.js";
import { HttpAnswers } from "../../transformer/frontend/page/answers.js";
import { factsOf } from "../../transformer/frontend/page/model_facts.js";

const tokenizer = {
  model: { type: "WordLevel", vocab: { Tom: 0, ran: 1, ".": 2 } }, normalizer: null, decoder: null, post_processor: null, added_tokens: [],
  pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "WhitespaceSplit" }, { type: "Punctuation", behavior: "Isolated" }] },
};
const described = { version: "7", file_name: "stories", card: { title: "Stories", summary: "", examples: ["Tom ran."] }, about: { config: {}, card: { mask_token_id: null } }, in_browser: false };
/** @type {{ path: string, query: Record<string, string>, own: string | undefined }[]} */ let asked;
let model;

globalThis.document = /** @type {any} */ ({ baseURI: "http://host/" });
globalThis.fetch = async (url, options) => {
  const headers = /** @type {any} */ (options).headers;
  const { pathname, searchParams } = /** @type {URL} */ (url);
  const path = pathname.replace("/api/", "");
  asked.push({ path, query: Object.fromEntries(searchParams), own: headers["HeadsUp-Model"] });
  if (searchParams.get("version") === "old") return Response.json({ error: "It has been replaced." }, { status: 409 });
  if (path === "models/gone") return Response.json({ error: "There is no model “gone”." }, { status: 404 });
  return Response.json(path === "tokens" ? { tokens: [5], labels: ["x"], unknown: [] } : model);
};

beforeEach(() => [asked, model] = [[], described]);

test("a model is opened once, and asked by its name and version", async () => {
  const answers = new HttpAnswers();
  const [one, other] = await Promise.all([answers.open("stories"), answers.open("stories")]);
  assert.equal(one, other);
  assert.deepEqual(await one.read("a", "plain"), { tokens: [5], labels: ["x"], unknown: [] });
  await one.apiOf({ tokens: "0,1" }, { computed: () => {} }).json("masked");
  assert.deepEqual(asked.map(({ path, query }) => [path, query]), [
    ["models/stories", {}], ["tokens", { model: "stories", version: "7", text: "a", reads: "plain" }], ["masked", { model: "stories", version: "7", tokens: "0,1" }],
  ]);
});

test("the key of an own model goes in a header, and what isn't there is said", async () => {
  const answers = new HttpAnswers({ isOwn: (name) => name === "key" });
  const { isOwn, fileName, read } = await answers.open("key");
  await read("a", "chat");
  assert.deepEqual([isOwn, fileName, asked.map(({ path, own }) => [path, own])], [true, "stories", [["models/own", "key"], ["tokens", "key"]]]);
  await assert.rejects(answers.open("gone"), (error) => error instanceof ApiError && /no model “gone”/.test(error.message));
  await assert.rejects(answers.open("gone"));
  assert.equal(asked.filter(({ path }) => path === "models/gone").length, 2); // it may be there by now
});

test("a model that was replaced is forgotten, and that is told once; who asks the old version gets no answer", async () => {
  model = { ...described, version: "old" };
  const replaced = [];
  const answers = new HttpAnswers({ replaced: (name) => replaced.push(name) });
  const one = await answers.open("stories");
  let settled = 0;
  for (const asking of [one.read("a", "plain"), one.apiOf({}, { computed: () => {} }).json("masked")]) Promise.resolve(asking).finally(() => settled++);
  await new Promise((resolve) => setTimeout(resolve, 0));
  model = described;
  const other = await answers.open("stories");
  assert.deepEqual([replaced, settled, other.version], [["stories"], 0, "7"]);
  one.read("a", "plain");
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([replaced, await answers.open("stories")], [["stories"], other]);
});

test("a text is read in this browser where it has the tokenizer; of a small vocabulary all words are named", async () => {
  model = { ...described, tokenizer };
  const { read } = await new HttpAnswers().open("stories");
  assert.deepEqual(await read("Tom ran.", "plain"), { tokens: [0, 1, 2], labels: ["Tom", "ran", "."], new_words: [], unknown: [] });
  const unread = await read("Tom x ran y", "plain");
  assert.deepEqual([unread.tokens, unread.unknown.map(({ text, position }) => [text, position]), unread.known, unread.words], [[], [["x", 4], ["y", 10]], "Tom  ran ", ["Tom", "ran"]]);
  assert.equal(asked.length, 1);
});

test("what is known of a model is told, and nothing of what isn't", () => {
  const config = { architecture: "decoder-only", n_layers: 2, n_heads: 1, d_model: 16, positions: "rotary", context_length: 32 };
  const told = (card, more = {}) => Object.fromEntries(factsOf(/** @type {any} */ ({ about: { config: { ...config, ...more } }, card })));
  assert.deepEqual(told({ parameters: 3_280, task: "induction", accuracy: 0.991 }), {
    Shape: "2 layers × 1 head, 16 wide, rotary positions, context 32", Size: "3,280 parameters", "It predicts the": "next token", "Correct answers": "99.10% of unseen examples",
  });
  const whole = told({ parameters: 2_500_000, task: "next character", validation_loss: 1.23456, corpus: { title: "Plays" }, training: { steps: 90, seconds: 200, command: "train x", bits_per_byte: { model: 1.3, bigram: 1.625, xz: 2, gzip: 2.82 } } }, { architecture: "encoder-decoder", n_encoder_layers: 1 });
  for (const bits of ["1", { model: 1, bigram: "2" }]) assert.deepEqual(told({ training: { bits_per_byte: bits } }), told({}));
  assert.deepEqual(whole, {
    Shape: "1 encoder layer + 2 decoder layers × 1 head, 16 wide, rotary positions, context 32", Size: "2.5 M parameters", "Trained on": "Plays (?)", "It predicts the": "next character",
    "Validation loss": "1.2346 nats per token", "Bits per byte": "1.30 of unseen text; the best bigram table takes 1.63, xz 2.00, gzip 2.82", Steps: "90", "Trained in": "3 minutes on ?", "Train it again": "train x",
  });
});

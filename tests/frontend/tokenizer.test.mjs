// Tests that shipped models' tokenizers read and write in JavaScript as in Python, down to the words of an error.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { UnknownTokenError, printable } from "../../transformer/frontend/engine/token_text.js";
import { tokenizerFrom } from "../../transformer/frontend/engine/tokenizer.js";

const models = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "tokenizers.json"), "utf-8")).map((model) => {
  const json = JSON.parse(readFileSync(join(model.folder, "tokenizer.json"), "utf-8"));
  return { ...model, json, tokenizer: tokenizerFrom(json, { readsNames: model.readsNames }) };
});

function assertEncodes(name, tokenizer, encoded) {
  for (const { text, ids, error, pieces } of encoded) {
    const where = `${name}: ${JSON.stringify(text)}`;
    assert.deepEqual(tokenizer.unknownPieces(text).map((piece) => [piece.text, piece.position]), pieces ?? [], where);
    if (ids) assert.deepEqual(tokenizer.encode(text), ids, where);
    else assert.throws(() => tokenizer.encode(text), (thrown) => thrown instanceof UnknownTokenError && thrown.message === error, where);
  }
}

test("a shipped model's tokenizer encodes as Python's does, and refuses the same texts in the same words", () => {
  for (const { name, tokenizer, encoded } of models) assertEncodes(name, tokenizer, encoded);
  const all = models.flatMap(({ encoded }) => encoded);
  assert.ok(all.filter(({ ids }) => ids?.length).length > 100 && all.filter(({ error }) => error).length > 100);
});

test("it decodes and labels as Python's does", () => {
  for (const { name, tokenizer, vocabSize, labels, decoded } of models) {
    assert.equal(tokenizer.vocabSize, vocabSize);
    assert.deepEqual(tokenizer.labels(labels.keys()), labels, name);
    for (const [ids, text] of decoded) assert.equal(tokenizer.decode(ids), text, `${name}: ${ids}`);
  }
});

test("new words of two texts are those that Python finds, and are written as they were typed", () => {
  for (const { name, tokenizer, named } of models) {
    for (const { texts, words, labels, decoded, encoded } of named) {
      const read = tokenizer.withNewWords(texts);
      assert.deepEqual(read.newWords, words, `${name}: ${JSON.stringify(texts)}`);
      assert.deepEqual(read.labels(labels.keys()), labels);
      const ids = [...labels.keys()];
      assert.equal(read.decode([...ids.slice(0, 40), ...ids.slice(-40)]), decoded);
      assertEncodes(name, read, encoded);
    }
  }
  assert.ok(models.flatMap(({ named }) => named).filter(({ words }) => words.length === 3).length > 20);
});

test("every character has the label that Python gives it", () => {
  const [known, labels] = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "labels.json"), "utf-8"));
  assert.ok(known.length > 200_000);
  assert.deepEqual(known.filter((one, at) => printable(one) + printable(`a${one}`) !== labels[at]), []);
});

test("half a character is named, and a tokenizer of another kind is refused in a sentence", () => {
  const [{ tokenizer, json }] = models;
  assert.throws(() => tokenizer.encode("a\ud83d"), /never seen: 'U\+D83D' at 2\./);
  assert.throws(() => tokenizerFrom({ ...json, model: { type: "Unigram" } }), /can't be read in the browser: it has a model of the type Unigram\./);
  assert.throws(() => tokenizerFrom({ ...json, decoder: { type: "ByteLevel" } }), /a decoder of the type ByteLevel/);
  assert.throws(() => tokenizerFrom({ ...json, normalizer: { type: "NFC" } }), /a normalizer of the type NFC/);
});

// Tests the grammars: that they have every text of their task and nothing else, and offer each word that comes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Grammar, corrected, strangeIn } from "../../transformer/frontend/page/grammar.js";
import { closestTo } from "../../transformer/frontend/page/spelling.js";

const { stories: { grammar: json, texts, examples }, numbers } = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "grammars.json"), "utf-8"));
const [grammar, masked, ofNumbers] = [new Grammar(json), new Grammar(json, true), new Grammar(numbers.grammar)];
const partsOf = (text) => text.matchAll(/[.?]|[^\s.?]+/g);
const isKnown = (word) => grammar.words.has(word.toLowerCase());

test("every story with its questions and answers is in the grammar, whatever is masked in it or written in capitals", () => {
  assert.deepEqual(examples.flatMap((text) => masked.outside(text)), []);
  for (const text of texts) {
    assert.deepEqual(grammar.outside(text), [], text);
    assert.deepEqual(grammar.outside(text.toUpperCase()), [], text);
    let at = 0;
    assert.deepEqual(masked.outside(text.replace(/[^\s.?]+/g, (word) => (at++ % 3 ? word : "[mask]"))), [], text);
  }
});

test("before each word of a story that word is offered, or any of one's own, and so it is once it is begun", () => {
  for (const text of texts) {
    for (const { 0: word, index } of partsOf(text)) {
      const before = `${text.slice(0, index).trimEnd()} `;
      for (const begun of /[.?]/.test(word) ? [""] : ["", word[0]]) {
        const next = grammar.next(`${before}${begun}`);
        assert.ok(isKnown(word) ? next.words.includes(word) : next.takesNew, `${before}|${word}`);
        assert.equal(next.strange, "");
        assert.equal(new Set(next.words).size, next.words.length);
      }
    }
  }
});

test("a number's words are offered one after another, whatever separates them, and none after the last", () => {
  for (const text of numbers.texts) {
    for (const { 0: word, index } of text.matchAll(/[a-z]+/g)) {
      const before = text.slice(0, index);
      assert.ok(ofNumbers.next(before).words.includes(word) && ofNumbers.next(`${before}${word[0]}`).words.includes(word), `${before}|${word}`);
    }
    assert.deepEqual(ofNumbers.outside(text.replaceAll("-", " ").replace("thousand ", "thousand, ")), []);
  }
  assert.deepEqual(ofNumbers.next("one thousand and five ").words, []);
  assert.deepEqual(ofNumbers.next("thousand ").strange, "thousand");
  assert.deepEqual(ofNumbers.slips("fourty-two"), [{ typed: "fourty", known: "forty" }]);
  assert.equal(corrected("fourty-two fourtyish", { typed: "fourty", known: "forty" }), "forty-two fourtyish");
});

test("what is offered first goes on in each of the possible ways; of words alike, with those that the text has", () => {
  const first = (text, count) => grammar.next(text).words.slice(0, count);
  assert.deepEqual(first("Tom took the ball. Zorp gave ", 1), ["the"]);
  assert.deepEqual(new Set(first("Tom ran to the park. ", 4)), new Set(["Tom", "Where", "Who", "What"]));
  assert.deepEqual(first("Tom ran to the park. Mary went to the ", 1), ["park"]);
  assert.ok(!grammar.next("").words.includes("She") && grammar.next("Mary went to the park. ").words.includes("She"));
  assert.ok(!grammar.next("Mary went to the park. Where is Mary? park ").words.includes("She"));
  assert.deepEqual(new Set(grammar.next("Mary went").words), new Set(["to", "back"])); // a whole word is no beginning
  assert.equal(masked.next("Mary ").words[0], "[mask]");
});

test("a sentence outside the grammar is called that, and what would do is named; a new word may stand for a name alone", () => {
  const outside = (text) => grammar.outside(text).map(({ sentence }) => sentence);
  assert.deepEqual(outside("Zorp took the 🏀. He went to Ozuk. Who has the 🏀? Zorp"), []);
  assert.deepEqual(outside("Mary went to the park. Alice kicked the ball. Where is Mary"), ["Alice kicked the ball."]);
  assert.deepEqual(outside("She ran to the park. Mary went to the ball. It is cold"), ["She ran to the park.", "Mary went to the ball.", "It is cold"]);
  assert.deepEqual(outside("Where is she? Who kicked Tom? Tom Mary has the key."), ["Where is she?", "Who kicked Tom?"]);
  const [{ sentence }] = /** @type {any[]} */ (strangeIn(grammar, "Alice kicked the ball. Hello."));
  assert.match(sentence, /^The model has never met sentences like “Alice kicked the ball\.” and 1 other, .* After “Alice”, it knows “went”, “is”, “took”/);
  assert.equal(grammar.next("Alice kicked the ").strange, "kicked");
  assert.deepEqual(new Grammar({ rules: { ...json.rules, PERSON: ["Mary"] } }).outside("Tom ran to the park."), [{ sentence: "Tom ran to the park.", before: "", could: ["Mary", "Where", "Who", "What"] }]);
});

test("a word that is one slip from a known one, or two where it is long, is offered as that one where it can stand", () => {
  const known = [...grammar.words.values()];
  for (const word of known.filter(({ length }) => length > 3)) {
    const swapped = `${word[0]}${word[2]}${word[1]}${word.slice(3)}`;
    for (const typed of [`${word}${word.at(-1)}`, word.slice(0, -1), swapped].filter((one) => !isKnown(one))) assert.ok(closestTo(typed, known), typed);
  }
  assert.deepEqual([closestTo("gardn", known), closestTo("Marry", known), closestTo("wnet", known), closestTo("resturant", known)], ["garden", "Mary", "went", "restaurant"]);
  assert.deepEqual([closestTo("xx", known), closestTo("gxrdxn", known), closestTo("gxdn", known)], [null, "garden", null]);
  const text = "Marry wnet to the gardn. Marry took the ball.";
  const slips = [];
  let better = text;
  for (let found; (found = grammar.slips(better)).length; better = found.reduce(corrected, better)) slips.push(...found.map(({ known: one }) => one));
  assert.equal(better, "Mary went to the garden. Mary took the ball.");
  assert.deepEqual(new Set(slips), new Set(["Mary", "went", "garden"]));
  assert.deepEqual(grammar.slips("Kim went to the park."), []); // short names are alike
});

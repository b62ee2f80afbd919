// Tests that a text is continued whatever happens to the connection, and that a changed setting samples what is ahead
// anew.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../transformer/frontend/api_error.js";
import { GeneratedText } from "../../transformer/frontend/generation/generated_text.js";
import { Writer } from "../../transformer/frontend/generation/writer.js";

const PROMPT = [1, 2];
const { setTimeout: later } = globalThis;
globalThis.setTimeout = /** @type {any} */ ((callback, milliseconds) => later(callback, milliseconds / 20)); // a writer rests for seconds

/** @typedef {[after: number, what: Error] | undefined} Fault */

/** An engine whose token at a place is (place + seed) % 5. faults: of each question for tokens, [after how many tokens, what happens]. */
class Engine {
  asked = [];
  recordings = [];
  aborted = 0;

  /** @param {Fault[]} [faults] */
  constructor(faults = []) {
    this.faults = faults;
  }

  async *stream(path, values, { signal }) {
    const [most = Infinity, fault = null] = this.faults.shift() ?? [];
    this.asked.push(values);
    const first = values.tokens.split(",").length;
    signal.addEventListener("abort", () => (this.aborted += 1));
    for (let made = 0; made < values.max_new_tokens; made++) {
      if (made === most) throw fault;
      await new Promise((resolve) => setTimeout(resolve, 2));
      if (signal.aborted) return;
      const position = first + made;
      const logits = Float32Array.of(0, 1);
      yield { event: "token", data: { id: tokenAt(position, values.seed), position, probability: 0.5, rank: 1, entropy: 1, point: 0.5, window_start: 0, logits } };
    }
  }

  async recording(path, values) {
    this.recordings.push([path, values]);
    const fault = this.faults.shift();
    if (fault) throw fault[1];
    const of = (data, ...shape) => ({ shape: [data.length, ...shape], data });
    const count = values.tokens.split(",").length;
    const drawn = Array.from({ length: count - values.first + 1 }, (_, at) => tokenAt(values.first + at, values.seed));
    const each = (value) => of(drawn.map(() => value));
    return {
      metadata: { first: values.first, kinds: {} },
      tensors: {
        drawn: of(drawn), points: each(0.5), probability: each(0.5), rank: each(1), entropy: each(1), window_start: each(0),
        logits: { shape: [drawn.length, 2], data: drawn.flatMap(() => [0, 1]) },
      },
    };
  }
}

const tokenAt = (place, seed) => (place + seed) % 5;
const expected = (from, to, seed = 1) => Array.from({ length: to - from }, (_, at) => tokenAt(from + at, seed));

async function writing(engine, ids = []) {
  const settings = { temperature: 0.8, top_k: 0, top_p: 1, seed: 1 };
  const problems = [];
  const writer = new Writer({ changed() {}, problem: (sentence) => problems.push(sentence), settings: () => ({ ...settings }), whose: () => null });
  const generated = new GeneratedText({ prompt: PROMPT, source: [], ends: [] });
  generated.tree.restore(ids);
  await writer.begin(engine, generated, {});
  return { writer, generated, settings, problems };
}

const idsOf = (generated) => generated.tokens.map(({ id }) => id);
const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function until(isSo) {
  for (let tries = 0; tries < 800 && !isSo(); tries++) await rest(5);
  assert.ok(isSo());
}

test("what is known of a text at first is asked for, with the token that comes next", async () => {
  const engine = new Engine();
  const { generated } = await writing(engine, [3, 0]);
  assert.deepEqual([idsOf(generated), generated.tokens.map(({ flag }) => flag)], [[3, 0, 0], ["w", "u", "w"]]);
  assert.deepEqual(engine.recordings.map(([path, { tokens, first }]) => [path, tokens, first]), [["scores", "1,2,3,0", 2]]);
});

test("tokens come until so many are there, of one question", async () => {
  const engine = new Engine();
  const { writer, generated } = await writing(engine);
  await writer.ensure(20);
  assert.deepEqual([idsOf(generated), engine.asked.length, engine.asked[0].max_new_tokens], [expected(2, 20), 1, 17]);
  assert.ok(!writer.isAsking && generated.tokens.every(({ settings }) => settings.seed === 1));
});

test("a token that a stream is about to bring isn't drawn from the scores as well", async () => {
  const { writer, generated } = await writing(new Engine());
  generated.dropAhead(PROMPT.length);
  const written = writer.ensure(6);
  await writer.score(PROMPT.length);
  await written;
  assert.deepEqual(idsOf(generated), expected(2, 6));
});

test("a connection that breaks is taken up again from the tokens that are here", async () => {
  const away = new ApiError("The server can't be reached.", { isFinal: false });
  const stops = new ApiError("The server is stopping.", { isFinal: false });
  const engine = new Engine([undefined, [4, away], [0, away], [2, away], [3, stops]]); // scores, then tokens
  const { writer, generated, problems } = await writing(engine);
  await writer.ensure(20);
  assert.deepEqual(idsOf(generated), expected(2, 20));
  assert.deepEqual(engine.asked.map(({ tokens }) => tokens.split(",").length), [3, 7, 7, 9, 12]);
  assert.ok(["The server can't be reached.", "The server is stopping.", ""].every((sentence) => problems.includes(sentence)));
  assert.equal(problems.at(-1), "");
});

test("scores that couldn't be had aren't asked for again once there is another text", async () => {
  const engine = new Engine([undefined, [0, new ApiError("The server can't be reached.", { isFinal: false })]]);
  const { writer } = await writing(engine);
  const asking = writer.scoreAgain(2);
  await until(() => engine.recordings.length === 2 && !writer.isAsking);
  await writer.begin(/** @type {any} */ (engine), new GeneratedText({ prompt: [3], source: [], ends: [] }), {});
  await asking;
  assert.deepEqual(engine.recordings.map(([, { tokens }]) => tokens), ["1,2", "1,2,3", "3"]);
});

/** @type {Record<string, Fault>} */
const FINAL = {
  answer: [0, new ApiError("There is no such model.", { isFinal: true })],
  stream: [2, new ApiError("The text can't be written on.")],
};
for (const [name, fault] of Object.entries(FINAL)) {
  test(`an error of the ${name} that asking again won't mend ends the writing and is said`, async () => {
    const engine = new Engine([undefined, fault]);
    const { writer, generated, problems } = await writing(engine);
    await writer.ensure(20);
    assert.deepEqual([engine.asked.length, writer.hasFailed, writer.wanted, writer.isAsking], [1, true, null, false]);
    assert.equal(idsOf(generated).length, 1 + fault[0]);
    assert.match(problems.at(-1), /no such model|can't be written on/);
  });
}

test("stopping ends the stream, and what has come stays", async () => {
  const engine = new Engine();
  const { writer, generated } = await writing(engine);
  const ended = writer.ensure(300);
  await until(() => generated.have > 8);
  writer.halt();
  const have = generated.have;
  await rest(30);
  assert.deepEqual([generated.have, engine.aborted, writer.isAsking], [have, 1, false]);
  await ended;
  await writer.ensure(have + 3);
  assert.deepEqual(idsOf(generated), expected(2, have + 3));
});

test("a setting that is changed while it writes counts from the next token that is seen", async () => {
  const engine = new Engine();
  const { writer, generated, settings } = await writing(engine);
  writer.ensure(300);
  await until(() => generated.have > 12);
  generated.tree.current.seen = 5;
  settings.seed = 3;
  writer.redraw(2 + 5, 30);
  assert.equal(generated.have, 7);
  await until(() => generated.have === 31 && !writer.isAsking);
  assert.deepEqual(idsOf(generated), [...expected(2, 7), ...expected(7, 31, 3)]);
});

test("a setting that is changed at rest draws the next token anew; changed back at once, nothing is asked", async () => {
  const engine = new Engine();
  const { writer, generated, settings } = await writing(engine);
  settings.seed = 3;
  writer.redraw(2, null);
  await until(() => generated.tokens[0]?.settings.seed === 3);
  assert.deepEqual(idsOf(generated), expected(2, 3, 3));
  const asked = engine.recordings.length;
  writer.redraw(2, null);
  await rest(300);
  assert.equal(engine.recordings.length, asked);
});

test("what isn't known of another text on screen is asked for until it is answered", async () => {
  const engine = new Engine();
  const { writer, generated, problems } = await writing(engine);
  engine.faults.push([0, new ApiError("The server can't be reached just now.", { isFinal: false })]);
  generated.tree.restore([4, 4]);
  writer.scoreAgain(2);
  await until(() => problems.includes("The server can't be reached just now."));
  await until(() => generated.tokens[1].probability === 0.5);
  assert.equal(problems.at(-1), "");
});

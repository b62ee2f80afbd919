// Tests that a model in the browser answers as the API does, and says what it can't.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ApiError } from "../../transformer/frontend/api_error.js";
import { eventsOf } from "../../transformer/frontend/api.js";
import { LocalApi, LocalEngine } from "../../transformer/frontend/local_api.js";
import { readRecording } from "../../transformer/frontend/recording.js";
import { WorkerHere } from "./worker_here.mjs";

const TOLERANCE = 1e-4;
const folder = join(process.env.HEADSUP_FIXTURES, "answers");
const models = readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => {
  const { about, asked } = JSON.parse(readFileSync(join(folder, name), "utf-8"));
  return { name: name.replace(".json", ""), about, asked, weights: readFileSync(join(folder, name.replace(".json", ".weights"))) };
});

const workerHere = () => /** @type {any} */ (new WorkerHere());
const engineOf = ({ weights, about }) => new LocalEngine(workerHere, { weights, about });

/** Two answers agree, numbers to a part of the largest. */
function assertClose(found, expected, where, largest = 0) {
  if (typeof expected === "number" && typeof found === "number") {
    const limit = TOLERANCE * Math.max(largest, Math.abs(expected));
    assert.ok(Object.is(found, expected) || found === expected || Math.abs(found - expected) <= limit, `${where}: ${found}, not ${expected}`);
  } else if (expected && typeof expected === "object") {
    assert.deepEqual(Object.keys(found ?? {}).sort(), Object.keys(expected).sort(), where);
    for (const [key, value] of Object.entries(expected)) assertClose(found[key], value, `${where}.${key}`, largest);
  } else assert.equal(found, expected, where);
}

function assertTensor({ shape, data }, expected, where) {
  assert.deepEqual(shape, expected.shape, where);
  assert.equal(data.constructor, expected.data.constructor, where);
  const largest = expected.data.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 0);
  const isBytes = data instanceof Uint8Array;
  data.forEach((value, at) => {
    const limit = isBytes ? 1 : data instanceof Int32Array ? 0 : TOLERANCE * largest;
    const isSame = Object.is(value, expected.data[at]) || Math.abs(value - expected.data[at]) <= limit;
    assert.ok(isSame, `${where}[${at}]: ${value}, not ${expected.data[at]}`);
  });
}

for (const model of models) {
  test(`${model.name}: what instruments ask is answered as the API answers it`, async () => {
    const engine = engineOf(model);
    await engine.ready;
    const api = new LocalApi({ model: model.name, version: "v" }, engine);
    for (const { path, values, file, is_recording: isRecording } of model.asked) {
      const where = `${path} ${JSON.stringify(values)}`;
      const bytes = readFileSync(join(folder, file));
      if (["generate", "ablation", "patching"].includes(path)) await assertStream(api.stream(path, values), bytes, where);
      else if (isRecording) {
        const [found, expected] = [await api.recording(path, values), readRecording(bytes)];
        assertClose(found.metadata, expected.metadata, where);
        assert.deepEqual(Object.keys(found.tensors).sort(), Object.keys(expected.tensors).sort(), where);
        for (const [name, tensor] of Object.entries(expected.tensors)) if (!name.endsWith(".check")) assertTensor(found.tensors[name], tensor, `${where}: ${name}`);
      } else {
        const [found, expected] = [await api.json(path, values), JSON.parse(bytes.toString())];
        for (const check of expected.checks ?? []) delete check.largest;
        for (const { largest, magnitude, set_by: setBy } of found.checks ?? []) assert.ok(setBy.length || largest <= 1e-6 * Math.max(1, magnitude), where);
        for (const check of found.checks ?? []) delete check.largest;
        assertClose(found, expected, where);
      }
    }
  });
}

async function assertStream(events, bytes, where) {
  const [found, expected] = [[], []];
  const isTold = ({ event }) => event !== "progress"; // which the server tells more seldom
  for await (const event of events) if (isTold(event)) found.push(event);
  for await (const event of eventsOf(new Response(bytes))) if (isTold(event)) expected.push(event);
  assert.equal(found.length, expected.length, where);
  found.forEach(({ event, data }, at) => {
    assert.equal(event, expected[at].event, where);
    const { logits, row, top, ...rest } = data;
    const { logits: logits_, row: row_, top: top_, ...rest_ } = expected[at].data;
    assertClose(rest, rest_, where, 1);
    for (const [one, other] of [[logits, logits_], [row, row_], [top?.logits, top_?.logits]]) {
      assert.equal(Boolean(one), Boolean(other), where);
      if (one) assertTensor({ shape: [], data: one }, { shape: [], data: other }, where);
    }
    assert.deepEqual(top?.ids, top_?.ids, where);
  });
}

const stories = models.find(({ name }) => name === "stories");
const beginning = { model: "stories", tokens: "1,2,3" };

test("what can't be is said, and which parameter is wrong", async () => {
  const api = new LocalApi(beginning, engineOf(stories));
  /** @type {[string, Record<string, any>, string, RegExp][]} */
  const refused = [
    ["tensors", { tokens: "1,999" }, "tokens", /999 is not in this model's vocabulary of 49/],
    ["tensors", { tokens: "" }, "tokens", /it is empty/],
    ["tensors", { tokens: "1;2" }, "tokens", /such as 31,5,7/],
    ["tensors", { source: "1" }, "source", /no encoder/],
    ["outline", { tokens: new Array(100).fill(1).join() }, "tokens", /has 100 tokens, and this model reads at most 81/],
    ["outline", { changes: "scale~blocks.9.attn.hook_z~0~~0.0" }, "changes", /computes no blocks.9/],
    ["tensors", { names: ["blocks.9.attn.hook_q"] }, "names", /no blocks.9/],
    ["tensors", { names: ["logits[7]"] }, "names", /has 3 positions along pos; 7 isn't there/],
    ["tensors", { names: ["logits[-4]"] }, "names", /has 3 positions along pos; -4 isn't there/],
    ["tensors", { names: ["logits[2:-2]"] }, "names", /has 3 positions along pos; 2:-2 isn't there/],
    ["tensors", { names: ["logits[::0]"] }, "names", /“::0” is no index; 3, -1, :, 2:5 and ::2 are/],
    ["overview", { kind: "cross" }, "kind", /this model has self/],
    ["lens", { position: 3 }, "position", /from 0 to 2/],
    ["rows", { attention: "blocks.9.attn", first: 1, last: 2 }, "attention", /decoder has blocks.0.attn/],
    ["scores", { first: 9 }, "first", /from 1 to 3/],
    ["masked", {}, "model", /fills no masks/],
    ["circuit", { kind: "qk", attention: "blocks.9.attn", head: 0 }, "attention", /no qk circuit/],
    ["prompt-pairs", {}, "", /can't answer “prompt-pairs”/],
  ];
  for (const [path, values, parameter, words] of refused) {
    await assert.rejects(api.recording(path, values), (error) => error instanceof ApiError && error.parameter === parameter && words.test(error.message), path);
  }
  await assert.rejects(api.stream("generate", { max_new_tokens: 9999 }).next(), { parameter: "max_new_tokens", message: /^max_new_tokens can't be used/ });
});

test("a damaged file, one that is too large, and a browser without workers: a sentence", async () => {
  const { about, weights } = stories;
  const opened = (bytes, begin = workerHere) => new LocalEngine(begin, { weights: bytes, about });
  const halved = weights.subarray(0, weights.length / 2);
  await assert.rejects(opened(halved).ready, { message: /^This model's file can't be read\. .* ends at byte/ });
  await assert.rejects(opened("no base64!").ready, { message: /it is damaged/ });
  await assert.rejects(opened(new Uint8Array(60_000_001)).ready, { message: /take 61 MB; a browser computes with models of at most 60 MB/ });
  const other = models.find(({ name }) => name === "since-7-grouped");
  await assert.rejects(opened(other.weights).ready, { message: /can't be read\. .*(has no weights called|should have)/ });
  await assert.rejects(new LocalApi(beginning, opened(halved)).recording("outline"), { message: /can't be read/ });
  const none = opened(weights, () => {
    throw new ReferenceError("Worker is not defined");
  });
  await assert.rejects(new LocalApi(beginning, none).recording("outline"), (error) => error instanceof ApiError && /runs no workers/.test(error.message));
});

test("what nobody waits for is computed no further", async () => {
  const engine = engineOf(stories);
  await engine.ready;
  const { service } = /** @type {any} */ (engine.worker);
  const [api, other] = [new LocalApi(beginning, engine), new LocalApi(beginning, engine)];
  const written = api.stream("generate", { temperature: 0, max_new_tokens: 500 });
  await written.next();
  let isSettled = false;
  api.recording("outline").finally(() => (isSettled = true));
  const found = other.recording("outline"); // of the same pass: that it is abandoned by one is no matter to the other
  api.end();
  assert.equal((await found).metadata.ids.text.length, 3);
  while (service.waiting.size) await new Promise(setImmediate);
  assert.equal(isSettled, false);
  assert.equal(engine.waiting.size, 0);
  const stopping = new AbortController();
  const events = other.stream("generate", { temperature: 0, max_new_tokens: 500 }, { signal: stopping.signal });
  await events.next();
  const next = events.next();
  stopping.abort();
  await next;
  assert.ok((await events.next()).done);
  for await (const { event } of other.stream("generate", { temperature: 0, max_new_tokens: 500 })) if (event === "token") break;
  while (service.waiting.size) await new Promise(setImmediate);
});

test("without a seed, texts differ", async () => {
  const api = new LocalApi(beginning, engineOf(stories));
  const seeds = [];
  for (let text = 0; text < 2; text++) for await (const { event, data } of api.stream("generate", { max_new_tokens: 1 })) if (event === "begin") seeds.push(data.seed);
  assert.notEqual(seeds[0], seeds[1]);
});

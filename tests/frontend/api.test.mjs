// Tests requests to the engine: their addresses, their answers, streams of events, and how failures are handled.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, mock, test } from "node:test";
import { Api, parametersOf } from "../../transformer/frontend/api.js";
import { ApiError } from "../../transformer/frontend/api_error.js";

const BASE = new URL("http://host/app/api/");
const recording = readFileSync(`${process.env.HEADSUP_FIXTURES}/recording.safetensors`);
const ok = () => new Response(recording);
const refused = (status, body) => new Response(JSON.stringify(body), { status });
let asked;
let answers;
mock.timers.enable({ apis: ["setTimeout"] });

beforeEach(() => {
  [asked, answers] = [[], []];
  globalThis.fetch = async (url, options) => {
    asked.push({ url: String(url), ...options });
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer instanceof Error) throw answer;
    return answer();
  };
});

const api = (about = {}, options = {}) => new Api({ model: "m", version: "v", ...about }, { base: BASE, ...options });

/** What a promise gives while all waiting takes no time. */
async function hurried(promise) {
  let isOver = false;
  promise.then(() => (isOver = true), () => (isOver = true));
  while (!isOver) {
    await new Promise(setImmediate);
    mock.timers.tick(1000);
  }
  return promise;
}

test("a question is one address, which holds all that its answer depends on", async () => {
  answers = [ok];
  const found = await api({ tokens: "1,2", source: null, changes: undefined }).recording("tensors", { names: ["a[:, 3]", "b"], begin: 0 });
  assert.deepEqual(found.metadata.depth, { layers: 2 });
  assert.equal(asked[0].url, "http://host/app/api/tensors?model=m&version=v&tokens=1,2&names=a%5B%3A,+3%5D&names=b&begin=0");
  assert.equal(asked[0].method, undefined);
});

test("what is too long for an address is a body", async () => {
  answers = [ok];
  await api({ changes: null }).recording("overview", { text: "é".repeat(2_000), source: undefined });
  assert.equal(asked[0].url, "http://host/app/api/overview");
  assert.equal(asked[0].method, "POST");
  assert.deepEqual(JSON.parse(asked[0].body), { model: "m", version: "v", text: "é".repeat(2_000) });
});

test("an own model's token is in a header, and in no address", async () => {
  answers = [ok];
  await api({ model: "own" }, { token: "secret" }).recording("outline");
  assert.equal(asked[0].headers["HeadsUp-Model"], "secret");
  assert.ok(!asked[0].url.includes("secret"));
});

test("what the server refuses is said in its words, and not asked again", async () => {
  answers = [() => refused(400, { error: "names can't be used: no such thing.", parameter: "names" })];
  await assert.rejects(api().recording("tensors"), (error) => error instanceof ApiError && error.isFinal
    && error.message === "names can't be used: no such thing." && error.parameter === "names");
  assert.equal(asked.length, 1);
});

test("an error of the page's own is thrown as it is, at once", async () => {
  answers = [ok];
  await assert.rejects(api().ask("outline", {}, { read: /** @type {any} */ ("unknown") }), TypeError);
  assert.equal(asked.length, 1);
});

test("without a connection it is asked three times, and then said", async () => {
  answers = [new TypeError("Failed to fetch")];
  await assert.rejects(hurried(api().recording("outline")), (error) => error instanceof ApiError && !error.isFinal && /can't be reached/.test(error.message));
  assert.equal(asked.length, 3);
});

for (const [name, first] of [["busy", () => refused(503, { error: "Busy." })], ["flooded", () => refused(429, {})], ["away", new TypeError("x")]]) {
  test(`a server that is ${name} at first is asked again`, async () => {
    answers = [first, ok];
    assert.ok((await hurried(api().recording("outline"))).tensors);
    assert.equal(asked.length, 2);
  });
}

test("an answer that is no JSON is a sentence, too", async () => {
  answers = [() => new Response("<html>", { status: 502 })];
  await assert.rejects(hurried(api().json("checks")), { message: "The server answered with 502." });
});

test("once it has ended, nothing is asked and nobody is told", async () => {
  const one = api();
  globalThis.fetch = (_, { signal } = /** @type {RequestInit} */ ({})) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  let settled = false;
  one.recording("outline").finally(() => (settled = true));
  one.end();
  await new Promise(setImmediate);
  assert.ok(!settled);
});

test("parameters keep their commas, and leave out what isn't given", () => {
  assert.equal(parametersOf({ a: null, b: undefined, c: 0, d: "", e: [1, null, "x y"] }), "c=0&d=&e=1&e=x+y");
  assert.equal(parametersOf({ tokens: "1,2,3" }), "tokens=1,2,3");
});

// Streams

const EVENTS = [{ event: "begin", data: { seed: 1 } }, { event: "token", data: { label: "ñ😀: “x”", id: 3 } }, { event: "end", data: {} }];
const written = ({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
const TEXT = EVENTS.map(written).join("");

/** The server's answer in these pieces; an Error breaks it off. */
function streamed(pieces, onCancel = () => {}) {
  const left = pieces.map((piece) => (typeof piece === "string" ? new TextEncoder().encode(piece) : piece));
  const pull = (controller) => {
    if (left[0] instanceof Error) controller.error(left[0]);
    else if (left.length) controller.enqueue(left.shift());
    else controller.close();
  };
  answers = [() => new Response(new ReadableStream({ pull, cancel: onCancel }))];
  return api().stream("generate");
}

async function read(events, found = []) {
  for await (const each of events) found.push(each);
  return found;
}

test("events are read as they come, in pieces of any size", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (const size of [1, 2, 3, 7, 50, bytes.length]) {
    const pieces = [];
    for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
    assert.deepEqual(await read(streamed(pieces)), EVENTS);
  }
});

test("who reads no further lets the stream go", async () => {
  let cancelled = false;
  for await (const { event } of streamed(Array(50).fill(TEXT), () => (cancelled = true))) if (event === "token") break;
  for (let turn = 0; turn < 50 && !cancelled; turn++) await new Promise(setImmediate);
  assert.ok(cancelled);
});

test("a token's numbers are those that were packed", async () => {
  const values = Float32Array.from([0, -1.5, 3e-38, Infinity]);
  const packed = Buffer.from(values.buffer).toString("base64");
  const [{ data }] = await read(streamed([written({ event: "token", data: { logits: packed, row: packed, top: { ids: [1], logits: packed } } })]));
  assert.deepEqual(data, { logits: values, row: values, top: { ids: [1], logits: values } });
});

test("an error, or a connection that breaks, ends what is read, and says whether asking again may help", async () => {
  const error = (more = {}) => written({ event: "error", data: { error: "No.", parameter: "text", ...more } });
  /** @type {[string | Error, object][]} */
  const endings = [
    [error(), { message: "No.", parameter: "text", isFinal: true }],
    [error({ retry_after: 60 }), { message: "No.", parameter: "text", isFinal: false }],
    [new TypeError("network error"), { message: /^The connection has broken off/, isFinal: false }],
  ];
  for (const [ending, expected] of endings) {
    const found = [];
    await assert.rejects(read(streamed([TEXT, ending]), found), expected);
    assert.deepEqual(found, EVENTS);
  }
});

// Tests who answers in the app: the server at first, then a model in the browser, and the server again where that can't.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, mock, test } from "node:test";
import { ApiError } from "../../transformer/frontend/api_error.js";
import { BrowserFirstApi } from "../../transformer/frontend/browser_first.js";
import { WorkerHere } from "./worker_here.mjs";

const folder = join(process.env.HEADSUP_FIXTURES, "answers");
const { asked } = JSON.parse(readFileSync(join(folder, "stories.json"), "utf-8"));
const answerOf = (path) => asked.find((question) => question.path === path && !question.values.changes);
const text = { tokens: answerOf("outline").values.tokens };
const files = { description: "stories.description", weights: "stories.weights" };

/** @type {string[]} */ let questions; // that the server was asked, model files among them
/** @type {Record<string, (bytes: Uint8Array) => Uint8Array>} */ let damaged;
/** @type {WorkerHere} */ let worker; // the newest
let isAway;
let version = 0;

globalThis.document = /** @type {any} */ ({ baseURI: "http://host/" });
globalThis.Worker = /** @type {any} */ (class extends WorkerHere {
  constructor() {
    super();
    worker = this;
  }
});
globalThis.requestIdleCallback = /** @type {any} */ (setImmediate);
globalThis.fetch = async (url) => {
  const path = /** @type {URL} */ (url).pathname.replace("/api/", "");
  questions.push(path);
  if (isAway) throw new TypeError("no connection");
  const bytes = readFileSync(join(folder, files[path] ?? answerOf(path).file));
  return new Response(/** @type {any} */ (damaged[path]?.(bytes) ?? bytes));
};

beforeEach(() => {
  version += 1; // a model that the tab doesn't have yet
  [questions, damaged, isAway, worker] = [[], {}, false, null];
  mock.timers.reset();
});

/** What asks about a text, and what it was told about who computes. */
function asking(values = text) {
  const said = [""];
  const api = new BrowserFirstApi({ model: "stories", version: String(version), ...values }, { computed: (sentence) => said.push(sentence) });
  return { api, said: () => said.at(-1), ask: (path) => api.recording(path, answerOf(path).values) };
}

async function until(isSo) {
  while (!isSo()) await new Promise(setImmediate);
}

/** The same, once the model is in this browser. */
async function settled(values = text) {
  const found = asking(values);
  await found.ask("outline");
  await until(() => found.said());
  questions = [];
  return found;
}

async function written(events) {
  const ids = [];
  for await (const { event, data } of events) if (event === "token") ids.push(data.id);
  return ids;
}

test("the first picture is the server's; what follows is computed here, and said to be", async () => {
  const first = asking();
  await first.ask("outline");
  await until(() => first.said());
  assert.deepEqual(questions, ["outline", "description", "weights"]);
  assert.match(first.said(), /^Computed on the server at first, from now on in your browser\. Its numbers differ from the engine's by at most .+ of the largest \(measured here, on 32 tokens\)\.$/);
  const overview = await first.ask("overview");
  const next = asking({ tokens: "3,1,4,1,5" });
  assert.equal((await next.api.recording("outline")).metadata.ids.text.length, 5);
  await next.api.json("checks");
  assert.match(next.said(), /^Computed in your browser\. Its numbers differ/);
  assert.equal(questions.length, 3);
  isAway = true; // and the server needn't be there
  assert.deepEqual(await next.api.recording("overview", answerOf("overview").values), overview);
});

test("what the server was asked before the model was here doesn't count as computed in part, however late it answers", async () => {
  const { api, ask, said } = asking();
  const other = asking(); // of a page that is opened meanwhile
  const answers = [];
  const fetchNow = globalThis.fetch;
  globalThis.fetch = async (url) => {
    const found = await fetchNow(url);
    if (/** @type {URL} */ (url).pathname.endsWith("overview")) await new Promise((resolve) => answers.push(resolve));
    return found;
  };
  const late = [ask("overview"), other.ask("overview")];
  await ask("outline");
  await until(() => api.here);
  await until(() => answers.length === late.length);
  for (const answer of answers) answer();
  await Promise.all(late);
  globalThis.fetch = fetchNow;
  for (const sentence of [said(), other.said()]) assert.match(sentence, /^Computed on the server at first, from now on in your browser/);
});

test("a text goes on with the same tokens when its answerer changes", async () => {
  const values = answerOf("generate").values;
  const { api } = asking(values);
  const whole = await written(api.stream("generate", values));
  await until(() => api.here);
  for (const count of [1, 3]) {
    const tokens = [values.tokens, ...whole.slice(0, count)].join();
    assert.deepEqual(await written(api.stream("generate", { ...values, tokens, max_new_tokens: whole.length - count })), whole.slice(count));
  }
  assert.deepEqual(questions, ["generate", "description", "weights"]);
});

test("a damaged file, or other numbers than the engine's: the server answers, and the model isn't fetched again", async () => {
  const zeroed = (bytes) => Uint8Array.from(bytes, (byte, at) => (at < bytes.length - 40_000 ? byte : 0));
  for (const weights of [(bytes) => bytes.subarray(0, bytes.length / 2), (bytes) => bytes.subarray(0, 4), zeroed]) {
    version += 1;
    [damaged, questions, worker] = [{ weights }, [], null];
    const { ask, said } = asking();
    await ask("outline");
    await until(() => worker?.isEnded);
    await ask("overview");
    assert.deepEqual(questions, ["outline", "description", "weights", "overview"]);
    assert.equal(said(), "");
  }
});

test("where the model can't be fetched, that is tried again when the server has answered something else", async () => {
  const { ask, said } = asking();
  damaged.weights = () => {
    throw new TypeError("no connection");
  };
  mock.timers.enable({ apis: ["setTimeout"] });
  await ask("outline");
  while (questions.filter((path) => path === "weights").length < 3) {
    await new Promise(setImmediate);
    mock.timers.tick(1000);
  }
  mock.timers.reset();
  damaged = {};
  await until(() => questions.includes("description"));
  await new Promise((resolve) => setTimeout(resolve));
  await ask("overview");
  await until(said);
});

test("what the browser can't answer, the server does", async () => {
  const fail = () => {
    throw new RangeError("Array buffer allocation failed");
  };
  const { api, ask, said } = await settled();
  worker.service.ask = fail;
  await ask("overview");
  assert.deepEqual(questions, ["overview"]);
  assert.equal(said(), "Computed in part in your browser, and in part on the server.");
  assert.equal(api.here, null);
  version += 1;
  const next = await settled();
  worker.service.ask = fail;
  const stream = next.api.stream("generate", {});
  await assert.rejects(written(stream), (error) => error instanceof ApiError && !error.isFinal && /The server goes on/.test(error.message));
});

test("a worker that the browser has ended is noticed, and the server goes on", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { api } = await settled();
  const values = answerOf("generate").values;
  const stream = written(api.stream("generate", values));
  const waiting = api.recording("overview", answerOf("overview").values);
  worker.terminate();
  for (let look = 0; look < 3; look++) mock.timers.tick(4000);
  await assert.rejects(stream, /The server goes on/);
  assert.ok((await waiting).tensors.overview);
  assert.ok((await written(api.stream("generate", values))).length);
  assert.deepEqual(questions, ["overview", "generate"]);
  mock.timers.reset();
});

test("a worker that takes long to answer is waited for", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  const { api } = await settled();
  const waiting = api.recording("outline");
  for (let look = 0; look < 3; look++) {
    mock.timers.tick(4000);
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  }
  await waiting;
  assert.deepEqual(questions, []);
  mock.timers.reset();
});

test("one model at a time: who still waits for the one before is answered by the server", async () => {
  const before = await settled();
  const old = worker;
  version += 1;
  const waiting = before.ask("overview");
  await settled();
  assert.ok(old.isEnded && worker !== old);
  await waiting;
  await before.ask("overview");
  assert.deepEqual(questions, ["overview"]);
});

// Tests that server-sent events are read as they come, however they are cut.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsOf, floatsOf } from "../../transformer/frontend/generation/server_sent_events.js";

const EVENTS = [{ event: "begin", data: { seed: 1 } }, { event: "token", data: { label: "ñ😀: “x”", id: 3 } }, { event: "end", data: {} }];
const TEXT = EVENTS.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("");

function response(pieces, onCancel = () => {}) {
  const left = [...pieces];
  return new Response(new ReadableStream({
    pull(controller) {
      if (left.length) controller.enqueue(left.shift());
      else controller.close();
    },
    cancel: onCancel,
  }));
}

test("in pieces of any size", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (const size of [1, 2, 3, 7, 50, bytes.length]) {
    const pieces = [];
    for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
    const found = [];
    for await (const each of eventsOf(response(pieces))) found.push(each);
    assert.deepEqual(found, EVENTS);
  }
});

test("who reads no further lets the stream go", async () => {
  let cancelled = false;
  const pieces = [new TextEncoder().encode(TEXT), ...Array(50).fill(new TextEncoder().encode(TEXT))];
  for await (const { event } of eventsOf(response(pieces, () => (cancelled = true)))) if (event === "token") break;
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(cancelled);
});

test("numbers are those that were packed", () => {
  const values = Float32Array.from([0, -1.5, 3e-38, Infinity]);
  assert.deepEqual(floatsOf(Buffer.from(values.buffer).toString("base64")), values);
});

test("an error ends what is read, and says whether asking again may help", async () => {
  for (const [more, isFinal] of /** @type {[object, boolean][]} */ ([[{}, true], [{ retry_after: 60 }, false]])) {
    const pieces = [TEXT, `event: error\ndata: ${JSON.stringify({ error: "No.", parameter: "text", ...more })}\n\n`];
    const found = [];
    await assert.rejects(async () => {
      for await (const each of eventsOf(response(pieces.map((piece) => new TextEncoder().encode(piece))))) found.push(each);
    }, { message: "No.", parameter: "text", isFinal });
    assert.deepEqual(found, EVENTS);
  }
});

// Tests what the tab tells a new session, and what it keeps over a reload.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const kept = new Map();
Object.assign(globalThis, {
  sessionStorage: {
    getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value), removeItem: (name) => kept.delete(name),
  },
  location: { search: "?model=a&layer=1&embed=true" },
  addEventListener: () => {},
});
const { storeOverflow, lastAddress, sameParameters, unknownToSession } = await import("../../pages/ui/components/address_bar/stored_address.js");
const { viewState } = await import("../../transformer/frontend/view_state.js");
viewState(); // begins with what the tab was opened with

beforeEach(() => {
  kept.clear();
  globalThis.headsupAddress = undefined;
  location.search = "?model=a&layer=1&embed=true";
});

test("a tab that is new knows nothing more, and keeps nothing", () => {
  assert.equal(unknownToSession(), undefined);
  location.search = "";
  assert.equal(unknownToSession(), undefined);
  storeOverflow("model=a", {});
  assert.equal(kept.size, 0);
});

test("a tab whose session was lost knows what its bar says, and what it was told last where the bar is empty", () => {
  lastAddress().query = "model=a&prompt=b";
  assert.deepEqual(unknownToSession(), { query: "model=a", overflow: {}, selection: { layer: "1" } });
  location.search = "";
  assert.deepEqual(unknownToSession(), { query: "model=a&prompt=b", overflow: {}, selection: { layer: "1" } });
});

test("what an address had no room for belongs to that address, whatever is looked at", () => {
  storeOverflow("model=a", { prompt: "long" });
  assert.deepEqual(unknownToSession(), { query: "model=a", overflow: { prompt: "long" }, selection: { layer: "1" } });
  location.search = "?model=a&layer=5";
  assert.deepEqual(unknownToSession().overflow, { prompt: "long" });
  location.search = "?model=a&prompt=other";
  assert.equal(unknownToSession(), undefined);
  lastAddress().query = "model=a";
  location.search = "";
  assert.deepEqual(unknownToSession().overflow, { prompt: "long" });
});

test("what a browser keeps badly, or not at all, is nothing", () => {
  kept.set("headsup-left-out", "{");
  assert.equal(unknownToSession(), undefined);
  kept.set("headsup-left-out", "null");
  assert.equal(unknownToSession(), undefined);
  globalThis.sessionStorage.setItem = () => assert.fail();
  storeOverflow("model=a", { prompt: "long" });
});

test("parameters are the same in any order and encoding", () => {
  assert.ok(sameParameters("a=x+y&b=%C3%A9", "?b=é&a=x%20y"));
  assert.ok(!sameParameters("a=1", "a=1&b="));
  assert.ok(sameParameters("", ""));
});

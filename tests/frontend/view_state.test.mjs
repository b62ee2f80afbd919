// Tests the selection of a tab: shared by its instruments, held by its address, told to a page that frames it.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { ViewState, NAMES, viewState, replaceAddress } from "../../transformer/frontend/view_state.js";

test("it begins with what the address says of it, and with nothing else", () => {
  const tab = new ViewState("?model=shakespeare&layer=2&cell=1,5,2&prompt=layer");
  assert.deepEqual(tab.all(), { layer: "2", cell: "1,5,2" });
  assert.equal(tab.number("layer"), 2);
  assert.deepEqual(tab.numbers("cell"), [1, 5, 2]);
});

test("what is no whole number, or none at all, is null", () => {
  for (const text of ["", "-1", "1.5", "x", " 1", "1e3", "0x1", "1,", ",1", "1,,2"]) {
    const tab = new ViewState(`?${new URLSearchParams({ layer: text, cell: text })}`);
    assert.equal(tab.number("layer"), null, text);
    if (!/^\d+$/.test(text)) assert.equal(tab.numbers("cell"), null, text);
  }
  assert.equal(new ViewState("").number("head"), null);
});

test("everybody but who says it is told of something else, once, and of the same never", () => {
  const tab = new ViewState("?layer=2");
  const heard = [];
  const one = () => heard.push("one");
  const unfollow = tab.follow(one);
  tab.follow(() => heard.push("other"));
  assert.equal(tab.set({ layer: 2, head: null, model: "x" }), false); // the same; and a model isn't looked at
  assert.equal(tab.set({ layer: 3, head: 1 }, one), true);
  assert.deepEqual(heard, ["other"]);
  unfollow();
  tab.set({ head: "" });
  assert.deepEqual(heard, ["other", "other"]);
  assert.deepEqual(tab.all(), { layer: "3" });
  tab.flush();
});

test("the address follows soon, at once when asked, and no oftener than browsers allow", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let written = 0;
  const tab = new ViewState("", () => written++);
  for (let layer = 0; layer < 75; layer++) { // thirty seconds of scrubbing
    tab.set({ layer });
    mock.timers.tick(400);
  }
  assert.ok(written > 50 && written <= 75, String(written));
  tab.set({ head: 1 });
  tab.flush();
  const now = written;
  mock.timers.tick(5_000);
  assert.equal(written, now);
  mock.timers.reset();
});

test("an address keeps its other parameters, and of what is looked at has what the tab holds", () => {
  const tab = new ViewState("?layer=2&query=5");
  tab.set({ layer: null, head: 1 });
  const found = new URLSearchParams(tab.merged("model=a%20b&layer=9&prompt=x&prompt=y"));
  assert.deepEqual([...found], [["model", "a b"], ["prompt", "x"], ["prompt", "y"], ["query", "5"], ["head", "1"]]);
  tab.become("?layer=7&model=z");
  assert.deepEqual(tab.all(), { layer: "7" });
  tab.flush();
});

test("what an address has no room for is left out of it, the branches first, and stays in the tab", () => {
  const tab = new ViewState("");
  tab.set({ layer: 1, step: 9, branches: "1".repeat(3000), written: "2".repeat(5000) });
  assert.deepEqual([...new URLSearchParams(tab.merged("model=x")).keys()].sort(), ["layer", "model", "step", "written"]);
  tab.set({ written: "2".repeat(9000) });
  assert.deepEqual([...new URLSearchParams(tab.merged("model=x")).keys()].sort(), ["layer", "model"]);
  assert.equal(tab.get("written").length, 9000);
  tab.flush();
});

test("the tab has one, which follows Back and Forward; the bar is written over, and a page that frames the app is told", () => {
  const listeners = {};
  const [told, entries] = [[], []];
  const location = { search: "?model=m&layer=1", pathname: "/Attention", hash: "#x" };
  Object.assign(globalThis, {
    location, window: globalThis, addEventListener: (kind, listener) => (listeners[kind] = listener),
    parent: { postMessage: (message, origin) => told.push([message, origin]) },
    history: { state: { key: 5 }, replaceState: (...entry) => entries.push(entry) },
  });
  const tab = viewState();
  assert.equal(viewState(), tab);
  tab.set({ layer: 2 });
  listeners.pointerdown(); // what is pressed may run the page
  assert.deepEqual(entries, [[{ key: 5 }, "", "/Attention?model=m&layer=2#x"]]);
  assert.deepEqual(told, [[{ stCommVersion: 1, type: "SET_QUERY_PARAM", queryParams: "?model=m&layer=2" }, "*"]]);
  location.search = "?model=m&layer=2";
  replaceAddress("model=m&layer=2");
  assert.equal(entries.length, 1);
  location.search = "?model=m&layer=7&query=3";
  listeners.popstate();
  assert.deepEqual(tab.all(), { layer: "7", query: "3" });
  location.search = ""; // of a page that was left before its address was written
  listeners.popstate();
  assert.deepEqual(tab.all(), { layer: "7", query: "3" });
  globalThis.history.replaceState = () => {
    throw new Error("too often");
  };
  tab.set({ layer: 8 });
  tab.flush();
  globalThis.parent = /** @type {any} */ (globalThis); // which isn't framed
  globalThis.history.replaceState = (...entry) => entries.push(entry);
  location.search = "?model=m";
  replaceAddress("");
  assert.equal(entries.at(-1)[2], "/Attention#x");
  assert.equal(told.length, 1);
});

test("names are what links have, each once", () => {
  assert.ok(NAMES.has("layer") && NAMES.has("circuit") && !NAMES.has("model") && !NAMES.has("prompt"));
});

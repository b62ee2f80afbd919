// Tests the page state of a tab: shared by its views, held by its address, told to a page that frames it.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { PageState, pageState, replaceAddress } from "../../transformer/frontend/page/page_state.js";

const namesIn = (state, search) => [...new URLSearchParams(state.addressed(search).query).keys()].sort();

test("it begins with what an address says, under the present names, and with nothing that isn't in the table", () => {
  const state = new PageState("?model=shakespeare&layer=2&cell=1,5,2&question=beside&utm=7");
  assert.deepEqual(state.all(), { model: "shakespeare", layer: "2", cell: "1,5,2", question: "comparison" });
  assert.equal(state.number("layer"), 2);
  assert.deepEqual(state.numbers("cell"), [1, 5, 2]);
  for (const text of ["", "-1", "1.5", "x", " 1", "1e3", "0x1", "1,", ",1", "1,,2"]) {
    const other = new PageState(`?${new URLSearchParams({ layer: text, cell: text })}`);
    assert.equal(other.number("layer"), null, text);
    if (!/^\d+$/.test(text)) assert.equal(other.numbers("cell"), null, text);
  }
  assert.equal(new PageState().number("head"), null);
  const opening = { layer: 1, head: 2 };
  for (const [link, layer, head] of /** @type {[string, number, number][]} */ ([["", 1, 2], ["layer=3", 3, 0], ["head=3", 0, 3], ["layer=0&head=0", 0, 0]])) {
    assert.deepEqual(new PageState(link).layerAndHead(opening), { layer, head }, link);
  }
  assert.deepEqual(new PageState().layerAndHead(null), { layer: 0, head: 0 });
});

test("everybody but who changes it is told of something else, once, and of the same never", () => {
  const state = new PageState("?layer=2");
  const heard = [];
  const one = () => heard.push("one");
  const unfollow = state.follow(one);
  state.follow(() => heard.push("other"));
  assert.equal(state.set({ layer: 2, head: null, utm: "x" }), false);
  assert.equal(state.set({ layer: 3, head: 1 }, one), true);
  assert.deepEqual(heard, ["other"]);
  unfollow();
  state.set({ head: "" });
  assert.deepEqual(heard, ["other", "other"]);
  assert.deepEqual(state.all(), { layer: "3" });
  state.set({ prompt: "" }); // which isn't the prompt that is suggested
  assert.equal(state.get("prompt"), "");
  state.flush();
});

test("with another model or prompt goes what belonged to the one before; a model's changes come back with it", () => {
  const state = new PageState("?model=a&prompt=b&written=1.2&step=4&layer=3&changes=without~mask~&pace=slow&other_prompt=c");
  state.choose("prompt", "d");
  assert.deepEqual(Object.keys(state.all()).sort(), ["changes", "layer", "model", "other_prompt", "pace", "prompt"]);
  state.choose("model", "e");
  assert.deepEqual(state.all(), { model: "e", pace: "slow" });
  state.become("model=e&changes=without~later~"); // as a lesson has it, whose changes aren't the visitor's
  state.become("model=e");
  state.choose("model", "a");
  assert.deepEqual(state.all(), { model: "a", changes: "without~mask~" });
  state.choose("model", "e");
  assert.deepEqual(state.all(), { model: "e" });
  state.flush();
});

test("the address follows soon, at once when asked or when a prompt is chosen, and no oftener than browsers allow", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let written = 0;
  const state = new PageState("", () => written++);
  for (let layer = 0; layer < 75; layer++) { // thirty seconds of scrubbing
    state.set({ layer });
    mock.timers.tick(400);
  }
  assert.ok(written > 50 && written <= 75, String(written));
  state.set({ head: 1 });
  state.flush();
  const before = written;
  state.choose("prompt", "typed"); // Back may follow
  assert.equal(written, before + 1);
  state.choose("prompt", "typed");
  const now = written;
  mock.timers.tick(5_000);
  assert.deepEqual([written, now], [before + 1, before + 1]);
  mock.timers.reset();
});

test("an address keeps parameters of others, and has no room for all that is long: branches go first, with it what needs it", () => {
  const state = new PageState("?model=a%20b&layer=2&query=5");
  state.set({ layer: null, head: 1 });
  assert.deepEqual([...new URLSearchParams(state.addressed("embed=true&layer=9").query)], [["embed", "true"], ["model", "a b"], ["head", "1"], ["query", "5"]]);
  state.set({ step: 9, branches: "1".repeat(3000), written: "2".repeat(5000) });
  assert.deepEqual(namesIn(state), ["head", "model", "query", "step", "written"]);
  assert.deepEqual(Object.keys(state.addressed().leftOut), ["branches"]);
  state.set({ written: "2".repeat(9000) });
  assert.deepEqual(namesIn(state), ["head", "model"]);
  assert.equal(state.get("written").length, 9000);
  assert.equal(state.arrivals, 0);
  state.become("?layer=7&model=z");
  assert.deepEqual([state.all(), state.arrivals], [{ layer: "7", model: "z" }, 1]);
  state.flush();
});

test("a tab has one, which follows Back and Forward; its bar is written over, a page that frames it is told, and what is too long is stored", () => {
  const listeners = {};
  const [told, entries, stored] = [[], [], new Map()];
  const location = { search: "?model=m&layer=1", pathname: "/Attention", hash: "#x" };
  const kept = { query: "model=m&layer=1", leftOut: { branches: "0_1", layer: "9" } };
  stored.set("headsup-page-state", JSON.stringify(kept));
  Object.assign(globalThis, {
    location, window: globalThis, addEventListener: (kind, listener) => (listeners[kind] = listener),
    sessionStorage: { getItem: (name) => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value), removeItem: (name) => stored.delete(name) },
    parent: { postMessage: (message, origin) => told.push([message, origin]) },
    history: { state: { key: 5 }, replaceState: (...entry) => entries.push(entry) },
  });
  const state = pageState();
  assert.equal(pageState(), state);
  assert.deepEqual(state.all(), { model: "m", layer: "1", branches: "0_1" });
  state.set({ layer: 2, branches: null, written: "3".repeat(9000) });
  listeners.pointerdown(); // what is pressed may open another page
  assert.deepEqual(entries, [[{ key: 5 }, "", "/Attention?model=m&layer=2#x"]]);
  assert.deepEqual(told, [[{ stCommVersion: 1, type: "SET_QUERY_PARAM", queryParams: "?model=m&layer=2" }, "*"]]);
  assert.equal(JSON.parse(stored.get("headsup-page-state")).leftOut.written.length, 9000);
  location.search = "?model=m&layer=2";
  replaceAddress("model=m&layer=2");
  assert.equal(entries.length, 1);
  location.search = "?model=m&layer=7&query=3";
  listeners.popstate();
  assert.deepEqual(state.all(), { model: "m", layer: "7", query: "3" });
  location.search = ""; // of a page that was left before its address was written
  listeners.popstate();
  assert.equal(state.get("layer"), "7");
  globalThis.history.replaceState = () => {
    throw new Error("too often");
  };
  state.set({ layer: 8 });
  state.flush();
  assert.equal(stored.size, 0);
  globalThis.parent = /** @type {any} */ (globalThis); // which isn't framed
  globalThis.history.replaceState = (...entry) => entries.push(entry);
  location.search = "?model=m";
  replaceAddress("");
  assert.equal(entries.at(-1)[2], "/Attention#x");
  assert.equal(told.length, 1);
});

// Tests when the tab sends its page state to Python, and what it takes from it. (The browser's tests hold the whole protocol.)
import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { Exchange } from "../../pages/ui/host/exchange.js";
import { PageState } from "../../transformer/frontend/page/page_state.js";

mock.timers.enable({ apis: ["setTimeout"] });

/** A tab at an address, which has sent nothing. @param {string} search @param {{ isLeaving?: () => boolean }} [options] */
function tab(search, { isLeaving = () => false } = {}) {
  const state = new PageState(search);
  const sent = [];
  const exchange = new Exchange(state, { change: { isUnderWay: isLeaving, arrived: () => {} } });
  const draws = (told) => {
    exchange.draw({ session: "a", path: "/", sent: sent.length, reading: "a:1", dials_read: {}, dials: {}, drawn: {}, commands: [], ...told }, (message) => sent.push(message));
    mock.timers.tick(0);
  };
  const sets = (values) => {
    state.set(values);
    mock.timers.tick(0);
  };
  return { state, sent, draws, sets };
}

test("what Python draws nothing of is never sent, and what it draws is sent once", () => {
  const { sent, draws, sets } = tab("model=induction&prompt=A");
  draws({ drawn: { model: "induction", prompt: "A" } });
  sets({ layer: 3 });
  assert.deepEqual(sent, []);
  sets({ prompt: "B" });
  sets({ prompt: "C" }); // while the run is under way
  assert.deepEqual(sent.map(({ values }) => values.prompt), ["B"]);
  draws({ drawn: { model: "induction", prompt: "B" } });
  assert.deepEqual(sent.map(({ values, agreed }) => [values.prompt, values.layer, agreed]), [["B", "3", "a:1"], ["C", "3", "a:1"]]);
});

test("a message that nobody has answered is sent anew, and none while the page is being left", () => {
  let isLeaving = true;
  const { sent, draws, sets } = tab("model=induction", { isLeaving: () => isLeaving });
  draws({ drawn: { prompt: null } });
  sets({ prompt: "B" });
  assert.equal(sent.length, 0);
  isLeaving = false;
  draws({ drawn: { prompt: null } });
  assert.equal(sent.length, 1);
  mock.timers.tick(5000);
  assert.deepEqual(sent.map((message) => message.sent), [1, 2]);
});

test("asked what it held before a lesson's view, the tab says it once", () => {
  const { sent, draws, sets } = tab("model=induction");
  sets({ layer: 3 });
  const commands = [{ number: 1, values: { model: "shakespeare", layer: "0" }, kind: "view" }];
  draws({ commands, reading: "a:2", asks_before: true });
  draws({ commands, reading: "a:2", asks_before: false });
  assert.deepEqual(sent.map(({ values, before }) => [values, before]), [[{ model: "shakespeare", layer: "0" }, { model: "induction", layer: "3" }]]);
});

test("dials are Python's, unless the tab holds another view than Python has read", () => {
  const { state, sent, draws } = tab("model=induction&positions_shown=100");
  draws({ dials_read: { positions_shown: "100" }, dials: { positions_shown: "101" } });
  assert.equal(state.get("positions_shown"), "101");
  state.become("model=induction&positions_shown=7"); // as Back does
  draws({ dials_read: { positions_shown: "100" }, dials: { positions_shown: "102" } });
  assert.deepEqual([state.get("positions_shown"), sent.length, sent[0].agreed], ["7", 1, null]);
  draws({ reading: "a:2", dials_read: { positions_shown: "7" }, dials: { positions_shown: "7" } });
  draws({ reading: "a:2", dials_read: { positions_shown: "7" }, dials: {} });
  assert.deepEqual([state.get("positions_shown"), sent.length], [null, 1]);
});

test("a model that Python chooses is chosen as in the menu: the former one's changes are put away, and come back", () => {
  const { state, draws } = tab("model=induction&prompt=A&changes=without~mask~");
  const chosen = (number, model) => ({ number, kind: "model", values: { prompt: null, changes: null, model } });
  draws({ commands: [chosen(1, "token")] }); // which was just trained
  assert.deepEqual(state.all(), { model: "token" });
  draws({ commands: [chosen(1, "token"), chosen(2, "induction")] }); // and is removed
  assert.deepEqual(state.all(), { model: "induction", changes: "without~mask~" });
});

test("each command is obeyed once, and those of another session are others", () => {
  const { state, sets, draws } = tab("model=induction");
  const commands = [{ number: 1, values: { prompt: "A" }, kind: "values" }];
  draws({ commands });
  sets({ prompt: "typed" });
  draws({ commands });
  assert.equal(state.get("prompt"), "typed");
  draws({ commands: [...commands, { number: 2, values: { model: "stories", layer: "1" }, kind: "view" }] });
  assert.deepEqual(state.all(), { model: "stories", layer: "1" });
  draws({ session: "b", commands });
  assert.equal(state.get("prompt"), "A");
});

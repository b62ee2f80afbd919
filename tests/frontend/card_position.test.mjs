// Tests where the tour's card lies beside what a step is about, and that a step takes back what it has changed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { placeCard } from "../../pages/ui/components/guide/card_position.js";
import { takeBack } from "../../pages/ui/components/guide/tour.js";
import { PageState } from "../../transformer/frontend/page/page_state.js";

const rect = (left, top, width, height) => ({ left, top, right: left + width, bottom: top + height });
const CARD = { width: 336, height: 200 }, ROOM = { width: 1280, height: 720 };

test("the card lies below a button, above one at the bottom, and away from a form that is open", () => {
  assert.deepEqual(placeCard(CARD, rect(32, 228, 87, 40), [], ROOM, false), { left: 32, top: 282, covered: 0 });
  assert.equal(placeCard(CARD, rect(32, 660, 87, 40), [], ROOM, false).top, 446);
  const form = rect(765, 168, 320, 502);
  const { left, covered } = placeCard(CARD, rect(789, 606, 272, 40), [form], ROOM, false);
  assert.ok(covered === 0 && (left + CARD.width <= form.left || left >= form.right));
});

test("it is always within the window, and says what it covers where there is no room", () => {
  const { left, top, covered } = placeCard(CARD, rect(0, 0, 1280, 720), [], ROOM, false);
  assert.ok(left >= 0 && top >= 0 && left + CARD.width <= 1280 && top + CARD.height <= 720);
  assert.equal(covered, CARD.width * CARD.height);
});

test("in a narrow window it lies at the bottom, and at the top where that covers something", () => {
  const narrow = { width: 420, height: 860 }, card = { width: 420, height: 180 };
  assert.deepEqual(placeCard(card, rect(16, 451, 87, 40), [], narrow, true), { left: 0, top: 680, covered: 0 });
  assert.deepEqual(placeCard(card, rect(16, 650, 388, 208), [], narrow, true), { left: 0, top: 0, covered: 0 });
  assert.equal(placeCard(card, undefined, [], narrow, true).top, 680);
});

test("the tour takes back what it has changed and nothing else, of a model that was left once it is shown again", () => {
  const [head, other] = ["scale~blocks.0.attn.hook_z~0~~0.0", "scale~blocks.1.attn.hook_z~1~~0.0"];
  const state = new PageState(new URLSearchParams({ model: "induction", changes: `${head}!${other}` }));
  takeBack({ model: "no", codes: [head] }, state);
  assert.equal(state.get("changes"), `${head}!${other}`);
  takeBack({ model: "induction", codes: [head] }, state);
  assert.equal(state.get("changes"), other);
  state.set({ model: "shakespeare", changes: null });
  takeBack({ model: "induction", codes: [other] }, state);
  state.set({ model: "induction", changes: other });
  assert.equal(state.get("changes"), null);
});

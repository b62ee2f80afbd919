// Tests texts in which words are masked: what is filled in, masked and taken back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MaskedText, surestOf } from "../../transformer/frontend/filling/masked_text.js";

const MASK = 9;
const word = (id) => ({ id, probability: 0.5, candidates: [] });

test("what is filled in and masked stands in the text, and every change can be taken back", () => {
  const text = new MaskedText([1, MASK, 3, MASK], MASK);
  const states = [text.ids];
  /** @type {[() => void, number[]][]} */
  const steps = [
    [() => text.fill(1, word(5)), [1, 5, 3, MASK]],
    [() => text.hide(2), [1, 5, MASK, MASK]],
    [() => text.fill(2, word(7)), [1, 5, 7, MASK]],
    [() => text.fill(2, word(8)), [1, 5, 8, MASK]],
    [() => text.hide(2), [1, 5, MASK, MASK]], // the mask that it was
    [() => text.show(2), [1, 5, 3, MASK]],
    [() => text.hide(1), [1, MASK, 3, MASK]], // the prompt's own mask again
    [() => text.hide(0), [MASK, MASK, 3, MASK]],
    [() => text.clear(), [1, MASK, 3, MASK]],
  ];
  for (const [act, ids] of steps) {
    act();
    assert.deepEqual(text.ids, ids);
    assert.deepEqual([0, 1, 2, 3].map((position) => text.isMasked(position)), ids.map((id) => id === MASK));
    states.push(ids);
  }
  assert.equal(text.isChanged, false);
  for (const ids of states.slice(0, -1).reverse()) {
    text.undo();
    assert.deepEqual(text.ids, ids);
  }
  text.undo();
  assert.deepEqual(text.ids, states[0]); // there is nothing more to take back
});

test("the surest mask is the one whose likeliest token is likeliest, the first of equals", () => {
  const mask = (position, ...probabilities) => ({ position, candidates: probabilities.map((probability, id) => ({ id, probability })) });
  assert.equal(surestOf([]), null);
  assert.equal(surestOf([mask(1, 0.5, 0.4), mask(4, 0.6), mask(7, 0.6)]).position, 4);
});

// Tests which cell of a grid a key leads to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nextCell } from "../../transformer/frontend/grid_navigation.js";

const ROWS = 30;
const COLUMNS = 5;
const go = (key, row, column, ...page) => nextCell({ key }, { row, column }, ROWS, COLUMNS, ...page);

test("arrows go to the cell beside, Home and End to the ends of the row, pages up and down", () => {
  assert.deepEqual(go("ArrowLeft", 3, 2), { row: 3, column: 1 });
  assert.deepEqual(go("ArrowRight", 3, 2), { row: 3, column: 3 });
  assert.deepEqual(go("ArrowUp", 3, 2), { row: 2, column: 2 });
  assert.deepEqual(go("ArrowDown", 3, 2), { row: 4, column: 2 });
  assert.deepEqual(go("Home", 3, 2), { row: 3, column: 0 });
  assert.deepEqual(go("End", 3, 2), { row: 3, column: 4 });
  assert.deepEqual(go("PageUp", 15, 2), { row: 5, column: 2 });
  assert.deepEqual(go("PageDown", 15, 2, 4), { row: 19, column: 2 });
});

test("no key leaves the grid", () => {
  for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]) {
    for (let row = 0; row < ROWS; row++) {
      for (let column = 0; column < COLUMNS; column++) {
        const next = go(key, row, column);
        assert.ok(next.row >= 0 && next.row < ROWS && next.column >= 0 && next.column < COLUMNS);
        assert.ok(next.row === row || next.column === column);
      }
    }
  }
});

test("other keys, combinations, and grids without cells move nothing", () => {
  for (const key of ["Enter", " ", "Tab", "a"]) assert.equal(go(key, 0, 0), null);
  for (const held of ["ctrlKey", "metaKey", "altKey"]) {
    assert.equal(nextCell({ key: "ArrowLeft", [held]: true }, { row: 0, column: 1 }, 2, 2), null);
  }
  assert.equal(nextCell({ key: "ArrowLeft" }, { row: 0, column: 0 }, 0, 5), null);
});

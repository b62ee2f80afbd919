// Tests the tree of texts: branches are begun, left, found again, kept over a reload and in an address, and never lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { branchesIn, branchesOf, idsIn, writtenIn } from "../../transformer/frontend/generation/branch_codes.js";
import { MOST_BRANCHES, BranchStore, Tree } from "../../transformer/frontend/generation/branch_tree.js";

const BEGIN = 5;
const drawn = (...ids) => ids.map((id) => ({ id, flag: "w" }));
const picked = (id) => ({ id, flag: "h" });
const idsOf = ({ written }) => written.map(({ id }) => id);
const kind = (id) => ({ label: `‹${id}›`, shown: `${id} ` });

/** A tree whose first text has these tokens, all of them seen. */
function tree(...ids) {
  const found = new Tree(BEGIN);
  Object.assign(found.current, { tokens: drawn(...ids), seen: ids.length });
  return found;
}

/** Numbers that are the same every time. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("another candidate begins a branch, and taking it back leaves the text as it was", () => {
  const found = tree(1, 2, 3);
  found.grow([...drawn(1), picked(9)]);
  assert.deepEqual([idsOf(found.current), found.current.at, found.branches.length], [[1, 9], BEGIN + 1, 2]);
  found.takeBack();
  assert.deepEqual([idsOf(found.current), found.branches.length], [[1, 2, 3], 1]);
  found.takeBack();
  assert.deepEqual(idsOf(found.current), [1, 2, 3]);
});

test("a branch in which something was written stays when it is taken back", () => {
  const found = tree(1, 2, 3);
  found.grow([...drawn(1), picked(9)]);
  Object.assign(found.current, { tokens: [...found.current.tokens, ...drawn(4)], seen: 3 });
  found.takeBack();
  assert.deepEqual(found.branches.map(idsOf), [[1, 2, 3], [1, 9, 4]]);
});

test("clearing begins an empty text, and undoing brings the other back", () => {
  const found = tree(1, 2);
  found.grow([], drawn(1));
  assert.deepEqual([found.current.length, found.current.tokens.length], [BEGIN, 1]);
  found.takeBack();
  assert.deepEqual([idsOf(found.current), found.branches.length], [[1, 2], 1]);
});

test("branches are named by where they part", () => {
  const found = tree(1, 2, 3);
  found.grow([...drawn(1), picked(9)]);
  found.grow([]);
  const [first, other, empty] = found.listed(kind);
  assert.deepEqual([first.name, first.parent, first.at, first.tokens], ["the first text", null, null, 3]);
  assert.deepEqual([other.name, other.parent, other.at, other.text], [`at ${BEGIN + 1}: “‹9›” instead of “‹2›”`, first.id, BEGIN + 1, "9 "]);
  assert.deepEqual([empty.name, empty.current], [`at ${BEGIN}: nothing yet`, true]);
});

test("a text that is brought is gone over to where it is, and has a branch of its own where it isn't", () => {
  const found = tree(1, 2, 3);
  found.restore([1, 2]);
  assert.deepEqual([idsOf(found.current), found.branches.length], [[1, 2], 2]);
  assert.deepEqual(found.current.tokens.map(({ flag }) => flag), ["w", "w"], "it is known how what both have came about");
  found.restore([1, 2, 3]);
  assert.deepEqual([found.current, found.branches.length], [found.branches[0], 2]);
  const empty = new Tree(BEGIN);
  empty.restore([4]);
  assert.deepEqual([idsOf(empty.current), empty.current.tokens[0].flag, empty.branches.length], [[4], "u", 1]);
  new Tree(BEGIN).restore([]);
});

test("whatever is done, no text that was seen is lost or changed, and all of it travels", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const next = random(seed);
    const found = new Tree(BEGIN);
    let before = new Map();
    for (let turn = 0; turn < 40; turn++) {
      const { current } = found;
      const act = ["write", "write", "pick", "undo", "clear", "switch", "restore"][next(7)];
      if (act === "write") Object.assign(current, { tokens: [...current.written, ...drawn(...Array.from({ length: next(4) }, () => next(9)))], seen: undefined });
      if (act === "write") current.seen = current.tokens.length;
      if (act === "pick" && current.seen) {
        const at = next(current.seen);
        if (current.tokens[at].id !== 10 + turn) found.grow([...current.tokens.slice(0, at), picked(10 + turn)]);
      }
      if (act === "undo") found.takeBack();
      if (act === "clear" && current.seen) found.grow([]);
      if (act === "switch") found.current = found.branches[next(found.branches.length)];
      if (act === "restore") {
        const ids = Array.from({ length: next(5) }, () => next(9));
        found.restore(ids);
        assert.deepEqual(idsOf(found.current), ids);
      }
      check(found);
      const now = new Map(found.branches.map((branch) => [branch.id, idsOf(branch)]));
      const isFull = now.size >= MOST_BRANCHES;
      for (const [id, ids] of before) {
        if (now.has(id)) assert.deepEqual(now.get(id).slice(0, ids.length), ids, `${act} in walk ${seed}`);
        else assert.ok(act === "undo" || isFull, `${act} in walk ${seed}`);
      }
      before = now;
    }
    const again = Tree.from(JSON.parse(JSON.stringify(found)), BEGIN);
    check(again);
    assert.deepEqual(again.listed(kind), found.listed(kind));
    assert.deepEqual(again.toJSON(), found.toJSON());
    const code = branchesOf(found);
    const linked = new Tree(BEGIN);
    linked.restore(idsIn(writtenIn(idsOf(found.current))));
    branchesIn(code, linked, 100);
    check(linked);
    assert.deepEqual(idsOf(linked.current), idsOf(found.current));
    assert.deepEqual(linked.branches.map(idsOf).map(String).sort(), found.branches.map(idsOf).map(String).sort());
  }
});

function check(found) {
  const { branches, current } = found;
  assert.ok(branches.includes(current) && branches.length <= MOST_BRANCHES && new Set(branches.map(({ id }) => id)).size === branches.length);
  for (const branch of branches) {
    assert.ok(branch.seen >= 0 && branch.seen <= branch.tokens.length);
    let above = branch;
    for (let steps = 0; above; steps++, above = above.parent) assert.ok(branches.includes(above) && steps <= branches.length, "no circle");
  }
}

test("what isn't a tree is none", () => {
  for (const found of [undefined, null, 5, "x", [], {}, { begin: BEGIN }, { begin: BEGIN, branches: [] }, { begin: BEGIN + 1, branches: [{ id: 1, tokens: [] }] },
    { begin: BEGIN, branches: [null] }, { begin: BEGIN, branches: [{ id: 1 }] }, { begin: BEGIN, branches: [{ id: 1, tokens: [null] }] }]) {
    assert.equal(Tree.from(found, BEGIN).current.seen, 0);
  }
});

test("a tab keeps what was written after its newest prompts, and a reload finds all of it", () => {
  const items = new Map();
  const store = { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => items.set(key, value) };
  const shelf = new BranchStore(store, "key");
  for (let prompt = 0; prompt < 12; prompt++) {
    const found = shelf.of(`prompt ${prompt}`, BEGIN);
    Object.assign(found.current, { tokens: drawn(prompt), seen: 1 });
    shelf.keep();
  }
  let reloaded = new BranchStore(store, "key");
  for (const prompt of [11, 7]) {
    assert.ok(reloaded.has(`prompt ${prompt}`));
    assert.deepEqual(idsOf(reloaded.of(`prompt ${prompt}`, BEGIN).current), [prompt]);
    reloaded.keep(); // of the prompt on screen; the others stay
    reloaded = new BranchStore(store, "key");
  }
  assert.ok(!reloaded.has("prompt 0"), "a tab doesn't keep everything");
});

test("a tab whose storage is full, blocked or strange goes on without it", () => {
  const full = { getItem: () => "{nonsense", setItem: () => { throw new Error("QuotaExceededError"); } };
  for (const store of [null, full, { getItem: () => "null", setItem: () => {} }, { getItem: () => '{"a": 3}', setItem: () => {} }]) {
    const shelf = new BranchStore(store, "key");
    assert.equal(shelf.of("a", BEGIN).current.seen, 0);
    shelf.keep();
  }
});

// Codes

test("the code of a text is its tokens, and anything else is no text", () => {
  assert.deepEqual(idsIn(writtenIn([3, 0, 49151])), [3, 0, 49151]);
  for (const code of ["", null, "x", "1..2", ".1", "1.", "1,2", "-1", "1.2.x", "１"]) assert.deepEqual(idsIn(code), []);
});

test("branches of an address that nobody wrote add nothing that can't be", () => {
  const next = random(1);
  const signs = "0123456789._*-x";
  const codes = ["", "*", "_", "0", "0_", "0__", "5_0_1", "0_x_1", "0_0_1.x", "0_0_500", "0_0_1*9_0_1", "0_0_1*".repeat(900)];
  for (let each = 0; each < 2000; each++) codes.push(Array.from({ length: next(20) }, () => signs[next(signs.length)]).join(""));
  for (const code of codes) {
    const found = tree(1, 2, 3);
    branchesIn(code, found, 100);
    check(found);
    assert.deepEqual(idsOf(found.branches[0]), [1, 2, 3]);
    assert.ok(found.branches.every((branch) => idsOf(branch).every((id) => Number.isInteger(id) && id < 100)), code);
    Tree.from(JSON.parse(JSON.stringify(found)), BEGIN);
  }
});

test("branches that are too much for an address stay in the tab", () => {
  const found = tree(...Array(100).fill(1));
  for (let each = 0; each < 20; each++) found.grow(drawn(...Array.from({ length: 100 }, (_, at) => at + each)));
  assert.equal(branchesOf(found), "");
});

// Encodes branches for the URL as token ids, since different ids can decode to the same text.
//
// A text is its tokens' ids, joined by dots. Branches other than the one on screen are joined by *; each is its parent, the position
// where it parts, and its ids, joined by _.
import { Branch, MOST_BRANCHES, common } from "./branch_tree.js";

const LONGEST = 3_000; // characters of all branches

export function idsIn(code) {
  return code && /^\d+(\.\d+)*$/.test(code) ? code.split(".").map(Number) : [];
}

export function writtenIn(ids) {
  return ids.join(".");
}

/** The branches other than the one on screen; empty if there are none, or too many for an address. */
export function branchesOf({ branches, current }) {
  const order = [current, ...branches.filter((branch) => branch !== current)];
  const codes = order.slice(1).map((branch) => {
    const parent = Math.max(order.indexOf(branch.parent ?? current), 0);
    const at = common(branch.written, order[parent].written);
    return [parent, at, branch.written.slice(at).map(({ id }) => id).join(".")].join("_");
  });
  const code = codes.join("*");
  return code.length <= LONGEST ? code : "";
}

/** Add an address's branches to a tree, without those that have tokens from `vocabulary` on. */
export function branchesIn(code, tree, vocabulary) {
  const order = [tree.current];
  for (const part of code.split("*")) {
    const [parent, at, ids = ""] = part.split("_");
    const from = order[Number(parent)];
    if (!from || !/^\d+$/.test(at) || (ids && !idsIn(ids).length) || idsIn(ids).some((id) => id >= vocabulary)) return;
    if (tree.branches.length >= MOST_BRANCHES) return;
    const tokens = [...from.written.slice(0, Number(at)), ...idsIn(ids).map((id) => ({ id, flag: "u" }))];
    tree.last += 1;
    order.push(new Branch(tree.last, tree.begin, from, tokens));
    tree.branches.push(order.at(-1));
  }
}

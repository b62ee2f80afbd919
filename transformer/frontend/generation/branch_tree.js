// The tree of texts generated from one prompt, and its storage across reloads. Independent of the DOM.
//
// A token's flag is "w" if it was drawn, "h" if it was chosen by hand, and "u" if nobody knows. `GeneratedText` adds the rest.
/** @import { Numbers } from "../recording.js" */

/**
 * @typedef {object} Token
 * @property {number} id
 * @property {string} flag
 * @property {string} [label]
 * @property {string} [shown]
 * @property {number} [probability]
 * @property {number} [rank]
 * @property {number} [entropy] in nats
 * @property {number | null} [point] the random number
 * @property {SamplingSettings | null} [settings] that drew it
 * @property {number} [windowStart] first position of the window that predicted it
 * @property {Numbers | null} [logits] of its position; null for a large vocabulary, which has `top`
 * @property {{ ids: ArrayLike<number>, logits: Numbers, normaliser: number } | null} [top]
 *
 * @typedef {{ temperature: number, top_k: number, top_p: number, seed: number }} SamplingSettings
 */

export const MOST_BRANCHES = 32; // one more replaces the oldest without children
const MOST_TREES = 8; // prompts whose texts are kept
const SNIPPET = 24; // tokens of a branch that are shown from where it parts

export class Branch {
  /** @type {number} */ id;
  /** @type {number} */ begin;
  /** @type {Branch | null} */ parent;
  /** @type {Token[]} */ tokens;
  /** @type {number} */ seen;

  /** begin: tokens of the prompt; tokens: written, and computed ahead; seen: how many of them are on screen. */
  constructor(id, begin, parent = null, tokens = [], seen = tokens.length) {
    Object.assign(this, { id, begin, parent, tokens, seen });
  }

  get written() {
    return this.tokens.slice(0, this.seen);
  }

  /** The position after the last token on screen. */
  get length() {
    return this.begin + this.seen;
  }

  /** The position where it parts from its parent: the first that differs, or that only one of them has. */
  get at() {
    return this.parent && this.begin + common(this.written, this.parent.written);
  }
}

export class Tree {
  constructor(begin) {
    this.begin = begin;
    this.last = 1;
    this.current = new Branch(this.last, begin);
    this.branches = [this.current];
  }

  find(id) {
    return this.branches.find((branch) => branch.id === id);
  }

  /** Begin a branch of the current one with these tokens, on screen but for those ahead, and switch to it. */
  grow(tokens, ahead = []) {
    this.last += 1;
    this.current = new Branch(this.last, this.begin, this.current, [...tokens, ...ahead], tokens.length);
    this.branches.push(this.current);
    if (this.branches.length > MOST_BRANCHES) this.forget(this.branches.find((branch) => this.canGo(branch)) ?? this.branches[0]);
  }

  /** Return to the branch that the current one was begun from, and forget the current one if nothing was written in it. */
  takeBack() {
    const left = this.current;
    if (!left.parent) return;
    this.current = left.parent;
    const isPickedOnly = left.seen > 0 && left.at === left.length - 1 && left.written.at(-1).flag === "h";
    if ((!left.seen || isPickedOnly) && this.canGo(left)) this.forget(left);
  }

  /** Switch to the branch that has this text, or begin one. */
  restore(ids) {
    const branch = this.branches.filter(({ written }) => written.length === ids.length && written.every(({ id }, at) => id === ids[at])).at(-1);
    if (branch) this.current = branch;
    else {
      const kept = common(this.current.written, ids.map((id) => ({ id })));
      const tokens = ids.map((id, at) => (at < kept ? this.current.tokens[at] : { id, flag: "u" }));
      if (this.current.seen) this.grow(tokens);
      else Object.assign(this.current, { tokens, seen: tokens.length });
    }
  }

  canGo(branch) {
    return branch !== this.current && this.branches.every(({ parent }) => parent !== branch);
  }

  forget(branch) {
    this.branches = this.branches.filter((other) => other !== branch);
    for (const other of this.branches) if (other.parent === branch) other.parent = null;
  }

  /** The branches as they are listed: [{ id, parent, at, name, tokens, current, text }]. kind(id) → { label, shown }. */
  listed(kind) {
    return this.branches.map((branch) => {
      const parts = branch.at === null ? 0 : branch.at - branch.begin;
      return {
        id: branch.id, parent: branch.parent?.id ?? null, at: branch.at, name: nameOf(branch, kind), tokens: branch.seen,
        current: branch === this.current, text: branch.written.slice(parts, parts + SNIPPET).map(({ id }) => kind(id).shown).join(""),
      };
    });
  }

  /** The tree for JSON: what was on screen, and how its tokens were drawn. */
  toJSON() {
    const settings = [];
    const numberOf = (setting) => {
      if (!setting) return -1;
      const text = JSON.stringify(setting);
      if (!settings.includes(text)) settings.push(text);
      return settings.indexOf(text);
    };
    const branches = this.branches.map(({ id, parent, written }) => ({
      id, parent: parent?.id ?? null, tokens: written.map((token) => [token.id, token.flag, token.point ?? null, numberOf(token.settings)]),
    }));
    return { begin: this.begin, current: this.current.id, branches, settings: settings.map((setting) => JSON.parse(setting)) };
  }

  /** Read what `toJSON` gave; an empty tree for anything else. */
  static from(stored, begin) {
    const tree = new Tree(begin);
    const isTree = stored?.begin === begin && stored.branches?.length && stored.branches.every((branch) => Array.isArray(branch?.tokens) && branch.tokens.every(Array.isArray));
    if (!isTree) return tree;
    const made = new Map();
    for (const { id, parent, tokens } of stored.branches) {
      const read = tokens.map(([token, flag, point, setting]) => ({ id: token, flag, point, settings: stored.settings?.[setting] ?? null }));
      made.set(id, new Branch(id, begin, made.get(parent) ?? null, read));
    }
    tree.branches = [...made.values()];
    tree.current = made.get(stored.current) ?? tree.branches[0];
    tree.last = Math.max(...made.keys());
    return tree;
  }
}

/** How many tokens two texts share at their beginning. */
export function common(one, other) {
  const most = Math.min(one.length, other.length);
  let shared = 0;
  while (shared < most && one[shared].id === other[shared].id) shared += 1;
  return shared;
}

function nameOf(branch, kind) {
  if (!branch.parent) return "the first text";
  const from = branch.at - branch.begin;
  const [here, there] = [branch.written[from], branch.parent.written[from]];
  if (!here) return `at ${branch.at}: nothing yet`;
  if (!there) return `at ${branch.at}: goes on with “${kind(here.id).label}”`;
  return `at ${branch.at}: “${kind(here.id).label}” instead of “${kind(there.id).label}”`;
}

/** The trees of a tab's latest prompts; a store keeps them over a reload. */
export class BranchStore {
  /** @type {Storage | null} */ store;
  /** @type {string} */ key;

  /** store: such as sessionStorage, or null; key: what they are kept under. */
  constructor(store, key) {
    Object.assign(this, { store, key });
    this.trees = new Map();
    try {
      this.kept = Object(JSON.parse(store?.getItem(key) ?? "{}"));
    } catch {
      this.kept = {};
    }
  }

  /** The tree of a prompt, by its key. begin: tokens of the prompt. */
  of(prompt, begin) {
    const chosen = this.trees.get(prompt) ?? Tree.from(this.kept[prompt], begin);
    this.trees.delete(prompt);
    this.trees.set(prompt, chosen); // the last entry is the last used
    for (const [other, tree] of this.trees) if (this.trees.size > MOST_TREES || (tree !== chosen && isEmpty(tree))) this.trees.delete(other);
    return chosen;
  }

  has(prompt) {
    return this.trees.has(prompt) || prompt in this.kept;
  }

  keep() {
    for (const [prompt, tree] of this.trees) {
      delete this.kept[prompt];
      if (!isEmpty(tree)) this.kept[prompt] = tree.toJSON();
    }
    this.kept = Object.fromEntries(Object.entries(this.kept).slice(-MOST_TREES));
    try {
      this.store?.setItem(this.key, JSON.stringify(this.kept));
    } catch {
      // A browser may store nothing, or have no room; a reload then has what the address holds.
    }
  }
}

function isEmpty({ branches, current }) {
  return branches.length === 1 && !current.seen;
}

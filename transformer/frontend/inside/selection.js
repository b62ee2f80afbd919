// Defines the selection of the page Inside: its initial value, and its limits in a given pass.

import { focusOf } from "./structure.js";
/** @import { InsidePass } from "./pass.js" */
/** @import { Focus, Structure } from "./structure.js" */

/**
 * @typedef {object} Chosen
 * @property {string} open a tensor or a module, empty for all of the model
 * @property {number | null} token null for the one that the text is given for
 * @property {number | null} source null for none
 * @property {number | null} head null for all
 * @property {number[] | null} cell the index of a cell of the tensor that is open
 * @property {number | null} moment where Play stands
 * @property {string[]} folds what is unfolded below the picture
 * @property {number | null} candidate the token that is asked about there, null for the likeliest
 * @property {Circuit | null} circuit
 *
 * @typedef {[kind: string, attention: string, head: number, distance: number, ...cell: number[]]} Circuit
 */

/** What can be unfolded below the picture, in the order in which links name it. */
export const FOLDS = ["lens", "who", "checks", "circuits"];

/** @type {Chosen} */
export const BEGIN = { open: "", token: null, source: null, head: null, cell: null, moment: null, folds: [], candidate: null, circuit: null };

/** Whether all of a change is so already. */
export function isSame(chosen, change) {
  return Object.entries(change).every(([name, value]) => JSON.stringify(chosen[name]) === JSON.stringify(value));
}

/**
 * What is looked at in a pass: what it doesn't have is as at first.
 *
 * @param {Chosen} chosen
 * @param {Structure} structure
 * @param {InsidePass} pass
 * @returns {{ chosen: Chosen, focus: Focus | null, token: number, source: number | null, head: number | null }}
 */
export function settled(chosen, structure, pass) {
  const [text, source] = ["text", "source"].map((which) => pass.labels[which].length);
  const focus = focusOf(structure, chosen.open);
  const { dims, sizes } = pass.describe(focus?.name) ?? { dims: [], sizes: [] };
  const fits = chosen.cell?.length === sizes.length && sizes.every((size, at) => within(chosen.cell[at], size) !== null);
  const cell = fits ? chosen.cell : null;
  // A map has the numbers of one head: of that of the cell, or of the first until one is chosen.
  const own = dims.includes("head") ? (cell?.[dims.indexOf("head")] ?? 0) : null;
  return {
    chosen: { ...chosen, cell, candidate: within(chosen.candidate, pass.config.vocab_size) },
    focus, token: within(chosen.token, text) ?? pass.predictedPosition, source: within(chosen.source, source), head: within(chosen.head, pass.config.n_heads) ?? own,
  };
}

/** An index, if there are so many; else null. */
export function within(index, count) {
  return Number.isInteger(index) && index >= 0 && index < count ? index : null;
}

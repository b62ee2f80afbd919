// What is looked at: what it is at first, and as far as a pass has it.

import { focusOf } from "./structure.js";

/**
 * open: a tensor or a module, empty for all of the model; token, source: null for the newest and for none; head: null for
 * all; cell: a place in the tensor that is open; moment: where Play stands; folds: what is unfolded below the picture;
 * candidate: the token that is asked about there, null for the likeliest; circuit: as in `Circuits.turnTo`.
 */
export const BEGIN = { open: "", token: null, source: null, head: null, cell: null, moment: null, folds: [], candidate: null, circuit: null };

/** Whether all of a change is so already. */
export function isSame(chosen, change) {
  return Object.entries(change).every(([name, value]) => JSON.stringify(chosen[name]) === JSON.stringify(value));
}

/** { chosen, focus, token, source, head } of a pass: what it doesn't have is as at first. */
export function settled(chosen, structure, pass) {
  const [text, source] = ["text", "source"].map((which) => pass.labels[which].length);
  const focus = focusOf(structure, chosen.open);
  const sizes = focus?.name ? pass.describe(focus.name).sizes : [];
  const fits = chosen.cell?.length === sizes.length && sizes.every((size, at) => within(chosen.cell[at], size) !== null);
  return {
    chosen: { ...chosen, cell: fits ? chosen.cell : null, candidate: within(chosen.candidate, pass.config.vocab_size) },
    focus, token: within(chosen.token, text) ?? text - 1, source: within(chosen.source, source), head: within(chosen.head, pass.config.n_heads),
  };
}

function within(place, count) {
  return Number.isInteger(place) && place >= 0 && place < count ? place : null;
}

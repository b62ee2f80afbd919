// Describes a head in words, from its measures on the text.

import { every, percent } from "../numbers.js";
/** @import { Window } from "../heatmap.js" */
/** @import { Pass } from "./pass.js" */

const CLEAR = 0.4; // the share of a head's weight above which it is said to do one thing
const SPREAD = 0.9; // the share of the largest possible entropy above which it is said to do nothing in particular
const SURE = 0.3; // the share below which each query has chosen
const ON_AVERAGE = " on average over the text";
const LITTLE = 0.05; // the share of a head's weight up to which a thing isn't what it does

/** What a head does, to go on after its name. measures: as `Pass.measures` has them. */
export function inWords(measures) {
  const spread = measures.find(({ name }) => name === "spread")?.value;
  const [most] = measures.filter(({ name }) => name !== "spread").sort((one, other) => other.value - one.value);
  if (spread >= SPREAD) return `spreads its weight over nearly everything it sees (${percent(spread)} of the largest entropy,${ON_AVERAGE})`;
  if (most?.value >= CLEAR) return `mostly ${most.sentence} (${percent(most.value)}${ON_AVERAGE})`;
  const few = spread <= SURE ? "each query looks at one or two tokens" : "";
  if (!(most?.value > LITTLE)) return few || "does no single thing";
  return `${few ? `${few}; most often it` : "most often"} ${most.sentence} (${percent(most.value)}${ON_AVERAGE})`;
}

/** The weights as the paper writes them. left: the rules that they do without. @param {Pass} pass @param {string[]} left */
export function formula(pass, left) {
  if (pass.uniform) return "uniform average";
  const scale = pass.undivided || left.includes("scale") ? "" : "/√d_k";
  return `softmax(QKᵀ${scale}${pass.causal && !left.includes("mask") ? " + mask" : ""})`;
}

/** A cell in words, for the line below the panels and for screen readers. without: what its steps leave out. */
export function cellInWords(pass, { row, column }, steps, without = []) {
  const at = row * pass.keys + column;
  const who = `Query ${pass.token("queries", row)}, key ${pass.token("keys", column)}`;
  if (!steps) return `${who}.`;
  if (steps.masked && steps.masked[at] === -Infinity) return `${who}: hidden by the mask, weight 0.`;
  if (!steps.raw) return `${who}: weight ${percent(steps.weights[at])}.`;
  const [raw, scaled] = [steps.raw[at], steps.scaled[at]].map((score) => score.toFixed(3).replace("-", "−"));
  return `${who}: q · k ${raw}, ${without.includes("scale") ? "" : `scaled ${scaled}, `}weight ${percent(steps.weights[at])}.`;
}

/**
 * Which part of the text is seen, and which labels had no room. window: what is zoomed into; room: as `Panels.room` has it.
 *
 * @param {Pass} pass
 * @param {Window | null} window
 * @param {{ rows: number, columns: number, pooled: boolean }} room
 */
export function seenInWords(pass, window, { rows, columns, pooled }) {
  const parts = [];
  if (window) {
    const range = (which, from, to) => `${pass.offsets[which] + from} to ${pass.offsets[which] + to - 1}`;
    parts.push(`Zoomed in: queries ${range("queries", window.top, window.bottom)}, keys ${range("keys", window.left, window.right)}.`);
  }
  if (pooled) parts.push("There are more cells than pixels: of those that share one, the largest is shown. Zoom in to see each.");
  if (rows > 1 || columns > 1) {
    const which = rows === columns ? [every(rows, "token")]
      : [rows > 1 ? every(rows, "query") : "", columns > 1 ? every(columns, "key") : ""].filter(Boolean);
    const lower = (words) => words[0].toLowerCase() + words.slice(1);
    const labelled = which.length > 1 ? `${which[0]} and ${lower(which[1])} are labelled` : `${which[0]} is labelled`;
    parts.push(`${labelled}, and the selected one.`);
  }
  return parts.join(" ");
}

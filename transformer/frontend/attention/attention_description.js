// Describes a head in words, from its measures on the text.

import { every, percent } from "../number_format.js";
/** @import { Window } from "../heatmap.js" */
/** @import { Pass } from "./pass.js" */

const CLEAR = 0.4; // the share of a head's weight that makes a measure clear
const SPREAD = 0.9; // the share of the largest entropy from which a head counts as spread out
const REPEATED = ["same", "induction"]; // measured only where a token occurs again

/** What a head does on average over the text, in a sentence. measures: from `Pass.measures`. */
export function headInWords(measures) {
  const spread = measures.find(({ name }) => name === "spread")?.value;
  const [most] = measures.filter(({ name }) => name !== "spread").sort((one, other) => other.value - one.value);
  if (spread >= SPREAD) return `It spreads its weight over nearly everything it sees (${percent(spread)} of the largest entropy).`;
  if (!(most?.value >= CLEAR)) return "On average over the text, it does none of these clearly.";
  return `${REPEATED.includes(most.name) ? "Where a token occurs again, it" : "It"} mostly ${most.sentence} (${percent(most.value)}).`;
}

/** A layer's weights as the paper writes them. left: the rules that they do without. @param {Pass} pass @param {number} layer @param {string[]} left */
export function formula(pass, layer, left) {
  if (pass.uniform) return "uniform average";
  const scale = pass.undivided || left.includes("scale") ? "" : "/√d_head";
  const scores = pass.cap ? `cap(QKᵀ${scale})` : `QKᵀ${scale}`;
  const bias = pass.bias && !left.includes("positions") ? " + position bias" : "";
  return `softmax(${scores}${bias}${pass.hasMask(layer, left) ? " + mask" : ""})`;
}

/** A cell of a head in words, for the line below the panels and for screen readers. without: the rules that its steps leave out. */
export function cellInWords(pass, { layer, head, row, column }, steps, without = []) {
  const at = row * pass.keys + column;
  const who = `Query ${pass.token("queries", row)}, key ${pass.token("keys", column)}`;
  if (!steps) return `${who}.`;
  if (steps.masked && steps.masked[at] === -Infinity) {
    const mask = pass.isCausal(layer) && column <= row && row - column >= pass.window(layer) ? "sliding window" : "mask";
    return `${who}: hidden by the ${mask}, weight 0.`;
  }
  if (!steps.raw) return `${who}: weight ${percent(steps.weights[at])}.`;
  const byHand = pass.setBy(layer, "weights", head, row).length ? ", set by hand" : "";
  const scores = [["q · k", steps.raw], ["scaled", without.includes("scale") ? null : steps.scaled], ["capped", steps.capped], ["with position bias", steps.biased]];
  const words = scores.filter(([, values]) => values).map(([name, values]) => `${name} ${values[at].toFixed(3).replace("-", "−")}`);
  return `${who}: ${words.join(", ")}, weight ${percent(steps.weights[at])}${byHand}.`;
}

/**
 * Which part of the text is visible, and which labels had no room. window: the zoom; room: from `Panels.room`.
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

// What a head does, in plain words, from what was measured on the text.

import { percent } from "../numbers.js";

const CLEAR = 0.4; // the share of a head's weight above which it is said to do one thing
const SPREAD = 0.9; // the share of the largest possible entropy above which it is said to do nothing in particular
const SURE = 0.3; // the share below which each query has chosen
const LITTLE = 0.05; // the share of a head's weight up to which a thing isn't what it does

/** One sentence on a head. measures: as `Pass.measures` has them. */
export function inWords(measures) {
  const spread = measures.find(({ name }) => name === "spread")?.value;
  const [most] = measures.filter(({ name }) => name !== "spread").sort((one, other) => other.value - one.value);
  if (spread >= SPREAD) return `Here it spreads its weight over nearly everything it sees: ${percent(spread)} of the largest entropy.`;
  if (most?.value >= CLEAR) return `Here it mostly ${most.sentence}: ${percent(most.value)} of its weight on average.`;
  const does = spread <= SURE ? "Here each query looks at one or two tokens, and not always at the same place" : "Here it does no single thing";
  return most?.value > LITTLE ? `${does}: what it does most is that it ${most.sentence}, with ${percent(most.value)} of its weight.` : `${does}.`;
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

// What a model itself knows positions by: in words, and the numbers of it that can be drawn.

import { headWidth, isCausal } from "../attention_config.js";
import { counted } from "../number_format.js";
import { sinusoidalTable } from "./sinusoidal.js";
/** @import { Api } from "../api.js" */

/**
 * @typedef {object} Drawn
 * @property {string} name
 * @property {string} across what a column is
 * @property {string} down what a row is
 * @property {string} unit what a number is
 * @property {string} caption
 * @property {number} rows
 * @property {number} columns
 * @property {Float32Array} values
 */

const KINDS = { alibi: "ALiBi", none: "no" }; // others have their name

/** "rotary", "ALiBi", "no". */
export const kindOfPositions = ({ positions }) => KINDS[positions] ?? positions;

/** @param {any} config @param {boolean} hasAttention */
export function inWords(config, hasAttention) {
  if (config.positions === "none" && !hasAttention) return "It has no positions and needs none: without attention it reads one token alone.";
  return [usedBy(config), ...ofRotation(config)].join(" ");
}

function usedBy(config) {
  const { positions, context_length: context, d_model: width } = config;
  const size = [counted(context, "position"), counted(width, "dimension")];
  const dims = rotatedDims(config);
  switch (positions) {
    case "sinusoidal": return `It adds the paper's fixed table to its embeddings: ${size.join(", ")}.`;
    case "learned": return `It adds a learned table, ${size.join(" × ")}, in place of sines.`;
    case "rotary": return `It adds no table. It turns each pair of dimensions of its queries and keys, ${dims === headWidth(config) ? dims : `the first ${dims} of ${headWidth(config)}`} dimensions a head, by its position's angle (Su et al. 2021): pair i of position p by p ÷ ${config.rotary_base}^(2i ÷ ${dims}) radians. Of their positions, the dot product of a query and a key then sees the distance alone.`;
    case "alibi": return "It adds no table and rotates nothing. Each head takes from a score in proportion to how far away the key is: ALiBi, attention with linear biases (Press et al. 2022). A head with a steep slope looks nearby, one with a gentle slope far back.";
    case "relative": return "It adds no table and rotates nothing. To each score it adds a number that was learned for the head and the key's distance (Raffel et al. 2020); large distances that hardly differ share one.";
    default: return `It has no positions. ${isCausal(config) ? "Only its causal mask tells it the order" : "Nothing tells it the order"}.`;
  }
}

/** What a model does otherwise than the formula has it, a sentence each. */
function ofRotation({ architecture, rotary_factors: factors = [], rotary_scale: scale = 1, window_rotary_base: ofWindows = null, unrotated_layers: unrotated = [], n_layers: layers }) {
  const short = (/** @type {number} */ number) => String(Number(number.toPrecision(4)));
  const found = [];
  if (factors.length) {
    const [least, most] = [Math.min(...factors), Math.max(...factors)];
    found.push(`To reach further, its pairs turn ${least < most ? `${short(least)} to ${short(most)}` : short(least)} times slower than that.`);
  }
  if (scale !== 1) found.push(`Rotated queries and keys are multiplied by ${short(scale)}.`);
  if (ofWindows !== null) found.push(`Layers that see a window only have the base ${ofWindows}, unscaled.`);
  const still = unrotated.filter((layer) => layer < layers);
  if (still.length) {
    const several = still.length > 1;
    const which = several ? `s ${still.slice(0, -1).join(", ")} and ${still.at(-1)} rotate` : ` ${still[0]} rotates`;
    found.push(`Layer${which} nothing${isCausal({ architecture }) ? `: only the causal mask tells ${several ? "them" : "it"} the order` : ""}.`);
  }
  return found;
}

/**
 * What can be drawn of it; null where there is nothing.
 *
 * @param {any} config
 * @param {string | null} learned the name of the learned table
 * @param {number[] | null} slopes of ALiBi's heads
 * @param {Api} api
 * @returns {Promise<Drawn | null>}
 */
export async function drawnOf(config, learned, slopes, api) {
  const { positions, context_length: context, d_model: width } = config;
  if (slopes) {
    const values = Float32Array.from({ length: slopes.length * context }, (_, at) => -slopes[Math.floor(at / context)] * (at % context));
    return { name: "What distance costs", across: "distance", down: "head", unit: "score", caption: "A row for each head: what is added to its score of a key so many positions away. The same in every layer.", rows: slopes.length, columns: context, values };
  }
  const table = { across: "dimension", down: "position", unit: "value", rows: context };
  if (positions === "rotary") {
    const dims = rotatedDims(config);
    const caption = `The angles' sines, in even dimensions, and cosines, in odd ones. The same in every layer and head${config.unrotated_layers?.length ? " that rotates" : ""}.`;
    return { ...table, name: "Sines and cosines of rotary positions", caption, columns: dims, values: sinusoidalTable(context, dims, config.rotary_base, config.rotary_factors) };
  }
  if (positions !== "learned" && positions !== "sinusoidal") return null;
  const values = learned ? /** @type {Float32Array} */ ((await api.recording("tensors", { names: [learned] })).tensors[learned].data) : sinusoidalTable(context, width, 10_000);
  const name = "The model's own table";
  return { ...table, name, caption: `${name}: ${counted(context, "position")} × ${counted(width, "dimension")}.`, columns: width, values };
}

const rotatedDims = (config) => config.rotary_dims ?? headWidth(config);

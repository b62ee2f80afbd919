// What a model predicts for a text and for the same tokens in another order, with positions and without.

import { isCausal } from "../attention_config.js";
import { problemOf } from "../intervention_checks.js";
import { distributionsOf, likeliestOf, probabilityOf } from "../what_if/distributions.js";
/** @import { Api, Parameters } from "../api.js" */
/** @import { Described } from "../intervention_checks.js" */
/** @import { Distribution } from "../what_if/distributions.js" */

/** @typedef {{ name: string, codes: string[] }} Way what a model is left with, and the changes that leave it that */

/**
 * @typedef {object} Comparison of the text and the other order
 * @property {[number[], number[]]} texts
 * @property {Distribution[][]} distributions by text and way
 * @property {number[]} moved by way, how far the order moves any probability
 * @property {(id: number) => string} label
 */

export const NAMES = ["Original", "Shuffled"];
export const ROUNDING = 1e-5; // a change of a probability this small is rounding
const CANDIDATES = 3; // tokens that are named of a prediction

/**
 * @typedef {object} AboutModel
 * @property {string} title
 * @property {string} file what its files are called
 * @property {any} config
 * @property {any[]} equations
 * @property {boolean} hasAttention
 * @property {number | null} mask its mask's token
 * @property {string | null} learned the name of its learned table
 * @property {number[] | null} slopes of ALiBi's heads
 * @property {number} shuffles random orders that are tried
 *
 * @typedef {object} AboutText
 * @property {boolean} isTranslator whether the source is shuffled, and not what a decoder reads
 * @property {number[]} read the tokens that are
 * @property {string[]} labels of these
 * @property {number} asked the position that is predicted, or after which, in what the decoder or an encoder-only model reads
 * @property {boolean} isCut whether the prompt is longer
 * @property {string[]} kept changes of the model
 * @property {boolean} removes whether others take away what is compared with and without
 */

/** What a model can be left with, from all that it has to attention alone. @param {Described} model @returns {Way[]} */
export function waysOf(model) {
  const { config } = model;
  const has = (/** @type {string} */ code) => !problemOf(code, model);
  const hasPositions = has("without~positions~"); // without layers, it turns nothing by its position
  const ways = [{ name: hasPositions ? "With positions" : "This model, without positions", codes: /** @type {string[]} */ ([]) }];
  const less = (/** @type {string} */ name, /** @type {string} */ code) => ways.push({ name, codes: [...ways[ways.length - 1].codes, code] });
  if (hasPositions) less("Without positions", "without~positions~");
  if (config.architecture === "decoder-only" && has("without~mask~")) less("No positions, no mask", "without~mask~");
  if (!isCausal(config) && has("without~windows~")) less("No positions, no windows", "without~windows~");
  return ways;
}

/** Whether a change takes away what is compared with and without. @param {string} code */
export const removesOrder = (code) => /^without~(positions|mask)~/.test(code);

/** Whether a token is called as special ones are: [mask], <s>; those stay where they are. @param {string} label */
const isSpecial = (label) => /^(\[.+\]|<.+>)$/.test(label);

/** The same tokens in so many random orders of those that move, the same each time. @param {number[]} text @param {number[]} moves positions @param {number} count @returns {number[][]} */
function shuffled(text, moves, count) {
  let state = 1;
  const random = (/** @type {number} */ below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // Numerical Recipes' generator
    return Math.floor((state / 2 ** 32) * below);
  };
  return Array.from({ length: count }, () => {
    const from = [...moves];
    for (let at = from.length - 1; at > 0; at--) {
      const other = random(at + 1);
      [from[at], from[other]] = [from[other], from[at]];
    }
    const order = [...text];
    moves.forEach((place, at) => (order[place] = text[from[at]]));
    return order;
  });
}

/**
 * What is predicted for a text and for another order of it, that of several which changes the prediction most; null for a text that is too short.
 *
 * @param {Api} api of the text
 * @param {(asked: Parameters) => Api} apiOf
 * @param {AboutModel} model
 * @param {AboutText} about
 * @returns {Promise<Comparison | null>}
 */
export async function comparedOrders(api, apiOf, model, { isTranslator, read, labels, asked: at, kept }) {
  const moves = read.map((_, place) => place).filter((place) => isTranslator || (place !== at && !isSpecial(labels[place])));
  if (new Set(moves.map((place) => read[place])).size < 2) return null;
  /** @type {Record<number, string[]>} */
  const kinds = {};
  const label = (/** @type {number} */ id) => kinds[id]?.[0] ?? `#${id}`;
  /** What is predicted for the text, and for others. @param {Api} by @param {number[][]} others */
  const predicted = async (by, others) => {
    const recording = await by.recording("predictions", { first: at, last: at, orders: others.map((order) => order.join()) });
    Object.assign(kinds, recording.metadata.kinds);
    return distributionsOf(recording);
  };
  const orders = shuffled(read, moves, model.shuffles);
  const [first, ...all] = await predicted(api, orders);
  const changes = all.map((distribution) => largestChange(first, distribution));
  const most = changes.indexOf(Math.max(...changes));
  const [, ...ways] = waysOf(model);
  const less = await Promise.all(ways.map(({ codes }) => predicted(apiOf({ ...api.about, changes: [...kept, ...codes].join("!") }), [orders[most]])));
  const distributions = [first, all[most]].map((distribution, order) => [distribution, ...less.map((both) => both[order])]);
  const texts = /** @type {[number[], number[]]} */ ([read, orders[most]]);
  return { texts, distributions, moved: distributions[0].map((distribution, way) => largestChange(distribution, distributions[1][way])), label };
}

/** What is predicted, as a table. @param {Way[]} ways @param {Comparison} found */
export function tableOfOrders(ways, { distributions, label }) {
  return {
    columns: ["order", "reads", "rank", "token", "probability"],
    rows: distributions.flatMap((row, order) => row.flatMap((of, way) => candidatesOf(of, label).map(([token, probability], rank) => [NAMES[order], ways[way].name, rank + 1, token, probability]))),
  };
}

/** @param {AboutModel} model @param {Way[]} ways @param {Comparison} found @returns {string[]} every second is bold */
export function verdict({ config, hasAttention }, ways, { moved }) {
  const isEncoder = config.architecture === "encoder-only";
  if (!hasAttention) return [`Without attention it reads ${isEncoder ? "one token" : "the last token"} alone, so order doesn't matter.`];
  if (moved.at(-1) >= ROUNDING) return ["This model gets the order from something other than positions."];
  if (!isEncoder) return ["Without positions and mask it predicts ", "the same next token for both orders", "."];
  const windows = ways.at(-1).name.includes("windows") ? " and windows" : "";
  return [`Without positions${windows} it predicts `, "the same token for both orders", "."];
}

/** @param {AboutModel} model @param {Way[]} ways @param {AboutText} text */
export function howItIsDone({ config, shuffles, mask }, ways, { isTranslator, isCut, removes, read }) {
  const isEncoder = config.architecture === "encoder-only";
  const staying = ["the last token stays where it is", "the mask stays where it is", "the masks stay where they are"][Math.min(read.filter((id) => id === mask).length, 2)];
  const which = shuffles > 1 ? `of ${shuffles} random orders, the one that changes the prediction most` : "a random order";
  const sentences = [`Shuffled: ${which}${isTranslator ? "" : `; ${staying}`}.`];
  if (isCut) sentences.push(`Only ${isEncoder ? "" : "the last "}48 tokens of the prompt are read.`);
  if (!isTranslator && !isEncoder && config.n_layers > 1) sentences.push("The causal mask also reveals the order, so the last column has no mask either.");
  if (ways.some(({ name }) => name.includes("windows"))) sentences.push("Sliding windows also reveal what is near, so the last column has none of them either.");
  if (removes) sentences.push(`The first column has ${isEncoder ? "positions" : "positions and mask"} even if you have removed them.`);
  return sentences.join(" ");
}

/** The likeliest tokens and their probabilities. @param {Distribution} of @param {(id: number) => string} label @returns {[string, number][]} */
export const candidatesOf = (of, label) => likeliestOf([of, of], CANDIDATES).map((id) => [label(id), probabilityOf(of, id)]);

/** @param {Distribution} one @param {Distribution} other */
function largestChange(one, other) {
  return Math.max(...[...one.keys(), ...other.keys()].map((id) => Math.abs(probabilityOf(one, id) - probabilityOf(other, id))));
}

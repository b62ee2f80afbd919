// The masks of the page Masks over some tokens, and what is said of each: the causal one, an encoder's own, that of padding, and none.

import { counted } from "../number_format.js";

/**
 * @typedef {object} Panel one mask over some tokens
 * @property {string} title
 * @property {string[]} labels
 * @property {string} mask of each cell, row by row, a digit: 0 where hidden, else which of `levels`, counted from 1
 * @property {number} offset the first token's position in the text
 * @property {string} words
 * @property {string[]} levels where a key can be visible, from the fewest layers to all of them
 * @property {string[]} before labels of the tokens just before, outside the context
 *
 * @typedef {{ size: number, layers: number[] }} Group the layers that see as many tokens; size 0: all
 * @typedef {{ labels: string[], offset: number }} Tokens
 */

const PADDING = "∅"; // how a padding token is labelled

/** The layers by how many of the last `seen` tokens their window holds, widest first. @param {number[]} windows by layer, 0 for none @param {number} seen @returns {Group[]} */
export function groupsOf(windows, seen) {
  const sizes = windows.map((size) => (size > 0 && size < seen ? size : 0));
  const widestFirst = [...new Set(sizes.length ? sizes : [0])].sort((one, other) => (other || Infinity) - (one || Infinity) || 0);
  return widestFirst.map((size) => ({ size, layers: sizes.flatMap((each, layer) => (each === size ? [layer] : [])) }));
}

/** @param {number[]} layers */
export const layersInWords = (layers) => `layer${layers.length > 1 ? "s" : ""} ${layers.join(", ")}`;

/** All of a model's layers. @param {number} count */
export const everyLayer = (count) => (count === 1 ? "its one layer" : `all ${count} layers`);

/**
 * The causal mask of a text's end.
 *
 * @param {Tokens} tokens
 * @param {{ windows: number[], length: number, before: string[], outside: number, context: number, isTranslator: boolean }} about windows: by layer;
 *   length: of what the context holds of the text; outside: how many tokens it has no room for, the last of which are `before`
 * @returns {Panel}
 */
export function causalPanel(tokens, { windows, length, before, outside, context, isTranslator }) {
  const groups = groupsOf(windows, length);
  const layers = windows.length;
  const narrow = narrowOnes(groups).map(({ size, layers: some }) => `${layersInWords(some)} the last ${size}`);
  const words = [
    "A token sees itself and what came before it; the next token, which it is trained to predict, is hidden.",
    layers ? `This model's ${isTranslator ? "decoder" : "attention"} uses it in ${everyLayer(layers)} and every head.` : "This model has no attention, so it uses none.",
  ];
  if (narrow.length) words.push(`A sliding window hides what is further back: in ${narrow.join(", in ")} tokens are visible.`);
  if (isTranslator) words.push("Its rows are what the decoder reads.");
  if (outside) words.push(`The context holds ${counted(context, "token")}: tokens before position ${outside} are outside it, so no query sees them.`);
  return panel(`Causal mask${narrow.length ? " with sliding windows" : ""}`, tokens, groups, seesEarlier, words.join(" "), before);
}

/** An encoder's own mask and a causal one over the same tokens. @param {Tokens} tokens @param {{ windows: number[], length: number }} about as above @returns {Panel[]} */
export function encoderPanels(tokens, { windows, length }) {
  const groups = groupsOf(windows, length);
  const narrow = narrowOnes(groups).map(({ size, layers }) => `in ${layersInWords(layers)} than ${counted(size - 1, "token")}`);
  const near = narrow.length ? ` A sliding window hides what is further away: ${narrow.join(", ")}.` : "";
  const own = `In ${everyLayer(windows.length)} and every head, a token sees what comes before it and after it.${near}`;
  return [
    panel("This encoder's mask", tokens, groups, seesNear, own),
    panel("A decoder's causal mask", tokens, groups, seesEarlier, "It hides from each token what comes after it, which a decoder has to predict."),
  ];
}

/** The padding mask of a text with padding after it. @param {{ ids: number[], labels: string[], offset: number }} text @param {number} pad the padding token @param {number} filler how many there are @returns {Panel} */
export function paddingPanel({ ids, labels, offset }, pad, filler) {
  const all = [...ids, ...new Array(filler).fill(pad)];
  const tokens = { labels: all.map((id, at) => (id === pad ? PADDING : labels[at])), offset };
  const words = `${PADDING} is a padding token: it makes the texts of a batch equally long, and no token may look at it.`;
  return panel("Padding mask", tokens, groupsOf([], 0), (_query, key) => all[key] !== pad, words);
}

/** No mask at all. @param {Tokens} tokens @param {boolean} hasEncoder @returns {Panel} */
export function openPanel(tokens, hasEncoder) {
  const own = hasEncoder ? "This model's encoder looks this way." : "This model has no encoder.";
  const words = `Every token sees every other. That suits an encoder, which reads a text that is all there and never has to predict what comes next. ${own}`;
  return panel("No mask", tokens, groupsOf([], 0), () => true, words);
}

/** Masks as a table: a row for each query and key. @param {Panel[]} panels */
export function tableOfMasks(panels) {
  return {
    columns: ["query position", "query", "key position", "key", "visible", "where", "mask"],
    rows: panels.flatMap(({ title, labels, mask, offset, levels }) => Array.from(mask, (cell, at) => {
      const [query, key] = [Math.floor(at / labels.length), at % labels.length];
      return [offset + query, labels[query], offset + key, labels[key], cell === "0" ? "False" : "True", levels[Number(cell) - 1] ?? "hidden", title];
    })),
  };
}

const seesEarlier = (query, key, size) => key <= query && (!size || query - key < size);
const seesNear = (query, key, size) => !size || Math.abs(query - key) < size;
const narrowOnes = (/** @type {Group[]} */ groups) => groups.filter(({ size }) => size).reverse();

/** @param {string} title @param {Tokens} tokens @param {Group[]} groups @param {(query: number, key: number, size: number) => boolean} sees @param {string} words @param {string[]} [before] @returns {Panel} */
function panel(title, { labels, offset }, groups, sees, words, before = []) {
  const cells = labels.flatMap((_row, query) => labels.map((_column, key) => groups.filter(({ size }) => sees(query, key, size)).length));
  const hidden = cells.filter((cell) => !cell).length;
  const hides = before.length ? "" : ` Of ${counted(cells.length, "cell")} here, ${hidden.toLocaleString("en")} are hidden${groups.length > 1 ? " in every layer" : ""}.`;
  return { title, labels, mask: cells.join(""), offset, words: words + hides, levels: levelsOf(groups), before };
}

/** @param {Group[]} groups */
function levelsOf(groups) {
  const widest = groups.slice(0, -1).map((_, at) => groups.slice(0, at + 1).flatMap(({ layers }) => layers).sort((one, other) => one - other));
  return [...widest.map((layers) => `visible in ${layersInWords(layers)}`), widest.length ? "visible in every layer" : "visible"];
}

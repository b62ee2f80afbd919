// Converts the settings of Generate to and from view parameters, and links its tokens to Inside.
import { parameter } from "../page/page_state.js";
/** @import { PageState } from "../page/page_state.js" */

const NUMBERS = ["temperature", "top_k", "top_p", "seed", "tokens"];
const SETTINGS = [...NUMBERS, "pace"];

/**
 * As `GenerationInstrument.begin` takes them. about: { choices, attention, opening }, what there is to choose from.
 *
 * @param {PageState} looked
 * @param {Record<string, any>} about
 */
export function selectionFrom(looked, { choices: { layers, heads, attentions, paces }, attention, opening }) {
  /** @type {Record<string, any>} */
  const chosen = {};
  for (const name of NUMBERS) {
    const { default: first, low, high } = parameter(name);
    const value = Number(looked.get(name) ?? NaN);
    chosen[name] = value >= low && value <= high ? value : first;
  }
  const among = (name, listed, otherwise) => (listed.some(([value]) => value === looked.get(name)) ? looked.get(name) : otherwise);
  chosen.pace = among("pace", paces, parameter("pace").default);
  chosen.attention = among("attention", attentions, attention);
  const { layer, head } = looked.layerAndHead(opening);
  chosen.layer = Math.min(layer, Math.max(layers - 1, 0));
  chosen.head = Math.min(head, Math.max(heads - 1, 0));
  return chosen;
}

/** The other way round, of those that were turned. */
export function paramsFrom(change) {
  return Object.fromEntries(Object.entries(change).map(([name, value]) => [name, SETTINGS.includes(name) && value === parameter(name).default ? null : value]));
}

/** Where the window begins from which the token after the first `length` of a text is predicted (inference/context_windows.py). */
export function windowStart(length, context) {
  const step = Math.max(1, Math.floor(context / 4));
  return Math.max(0, Math.ceil((length - context) / step)) * step;
}

/**
 * What to look at on the page Inside for a token's logit at a position of a text so long: it is computed one position before it. null where
 * the model doesn't read that any more.
 */
export function toLogit(position, token, length, context) {
  const begin = windowStart(length, context);
  return position - 1 < begin ? null : { inside: "logits", moment: null, place: position - 1, cell: [position - 1 - begin, token].join() };
}

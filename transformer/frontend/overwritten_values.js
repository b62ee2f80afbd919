// Tells which numbers of a pass were set by an intervention and therefore don't follow from earlier ones, as
// transformer/inference/overwritten_values.py does.

import { pointsWithout } from "./intervention_checks.js";
import { ablates, inWords, parsed } from "./intervention_codes.js";
/** @import { Described } from "./intervention_checks.js" */

/**
 * Where an intervention set numbers, as `overwritten_values` has it: null for all heads, or all positions. weighed: a weight that was set by
 * hand: its key, the weight, and whether the others share the rest.
 *
 * @typedef {object} SetNumbers
 * @property {string} point
 * @property {number | null} [head]
 * @property {number | null} [position]
 * @property {string} words
 * @property {string | null} [rule]
 * @property {boolean} [ablated] whether they were set to zero
 * @property {[key: number, weight: number, renormalised: boolean] | null} [weighed]
 */

/**
 * What interventions set, in their order. begin: the position of the pass's first token in the text.
 *
 * @param {Described} model
 * @param {string[]} codes
 * @param {number} begin
 * @returns {SetNumbers[]}
 */
export function overwrittenValues(model, codes, begin) {
  return codes.flatMap((code) => {
    const intervention = parsed(code);
    const { kind, values: { point, head, position, query, key, weight, renormalised, rule, where } } = intervention;
    const record = (fields) => ({ point, head, position: null, words: inWords(code), rule: "", weighed: null, ablated: ablates(intervention), ...fields });
    if (kind === "without") return pointsWithout(model, { rule, where }).map((name) => record({ point: name, head: null, rule }));
    const isOfSource = point.startsWith("encoder.");
    const start = isOfSource ? 0 : begin; // an encoder reads the source as a whole
    if (kind === "weigh") return [record({ position: query - start, weighed: [key - (point.includes(".cross_attn.") ? 0 : start), weight, renormalised] })];
    const own = record({ position: position === null ? null : position - start });
    const [, block, name] = /^(.*)\.(\w+)\.hook_result$/.exec(point) ?? [];
    return block ? [own, { ...own, point: `${block}.hook_${name}_out`, head: null, ablated: false }] : [own]; // its heads' sum is what attention gives
  });
}

/** Set a weight in its row, of all keys; if renormalised, the others share the rest. */
export function setWeight(row, key, weight, renormalised) {
  if (key < 0 || key >= row.length) return;
  const rest = 1 - row[key];
  const share = rest > 0 ? (1 - weight) / Math.max(rest, 1e-12) : 0;
  if (renormalised) for (let at = 0; at < row.length; at++) row[at] *= share;
  row[key] = weight;
}

export class OverwrittenValues {
  /** @param {SetNumbers[]} [records] none for a pass that nothing was changed in */
  constructor(records = []) {
    this.records = records;
  }

  /** What set a point's numbers, in words. head, position: of the numbers asked for; null for all of them. */
  setBy(point, head = null, position = null) {
    const fits = (wanted, set) => wanted === null || set === null || wanted === set;
    const records = this.records.filter((record) => record.point === point && fits(head, record.head) && fits(position, record.position));
    return [...new Set(records.map(({ words }) => words))];
  }

  /** The rules that an attention goes without; "positions" where these are added to its scores. */
  rules(module) {
    const mask = `${module}.hook_mask`;
    const points = { mask, later: mask, windows: mask, scale: `${module}.hook_scaled_scores`, positions: `${module}.hook_position_bias` };
    return Object.keys(points).filter((rule) => this.records.some((record) => record.rule === rule && record.point === points[rule]));
  }

  /** Whether a head's output is set to zero at every position. */
  isAblated(module, head) {
    return this.records.some((record) => record.ablated && record.position === null && [`${module}.hook_z`, `${module}.hook_result`].includes(record.point)
      && (record.head === null || record.head === head));
  }

  /** The weights of a head that were set by hand, in their order. */
  weighed(module, head) {
    return this.records.filter((record) => record.weighed && record.point === `${module}.hook_pattern` && record.head === head);
  }

  /** Set them in a head's weights, (query, key), as the model did. */
  weigh(module, head, weights, keys) {
    for (const { position, weighed: [key, weight, renormalised] } of this.weighed(module, head)) {
      if (position >= 0 && position * keys < weights.length) setWeight(weights.subarray(position * keys, (position + 1) * keys), key, weight, renormalised);
    }
    return weights;
  }
}

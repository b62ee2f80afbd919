// Tells which numbers of a pass were set by an intervention and therefore don't follow from earlier ones.

/**
 * Where a change set numbers, as `overwritten_values` has it: null for all heads, or all positions. weighed: a weight that was set by
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

  /** The rules that an attention goes without, of "mask", "scale" and "positions", where these are added to its scores. */
  rules(module) {
    const points = { mask: `${module}.hook_mask`, scale: `${module}.hook_scaled_scores`, positions: `${module}.hook_position_bias` };
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
      if (position < 0 || position * keys >= weights.length || key < 0 || key >= keys) continue;
      const row = weights.subarray(position * keys, (position + 1) * keys);
      const rest = 1 - row[key];
      if (renormalised) for (let at = 0; at < keys; at++) row[at] *= rest > 0 ? (1 - weight) / Math.max(rest, 1e-12) : 0;
      row[key] = weight;
    }
    return weights;
  }
}

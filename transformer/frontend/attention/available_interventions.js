// The interventions offered for the selected head: on the head, its attention pattern, the selected weight, and the rules.

import { codeOf } from "../intervention_codes.js";
/** @import { Steps } from "./pass.js" */

/** What `InterventionControls.show` takes. chosen: { layer, head }; cell: { row, column }; steps: the model's own, from `Pass.steps`, or none yet. */
export function interventionsAt(pass, { layer, head }, cell, steps) {
  const [module, names] = [pass.modules[layer], pass.names[layer]];
  const [query, key] = [pass.offsets.queries + cell.row, pass.offsets.keys + cell.column];
  const rules = [];
  if (pass.causal) rules.push({ title: "No mask in this layer", code: codeOf("without", { rule: "mask", where: `${module}.` }) });
  if (!pass.uniform) rules.push({ title: "No ÷ √d_head in this layer", code: codeOf("without", { rule: "scale", where: `${module}.` }) });
  if (pass.bias) rules.push({ title: "No position bias in this layer", code: codeOf("without", { rule: "positions", where: `${module}.` }) });
  return {
    parts: [
      { title: `Head ${head} of layer ${layer}`, point: `${module}.hook_z`, head },
      { title: `The whole attention of layer ${layer}`, point: names.out, head: null },
    ],
    positions: [{ title: `Only at the query, ${pass.token("queries", cell.row)}`, position: query }],
    rules,
    cell: steps && {
      title: `Weight that ${pass.token("queries", cell.row)} gives ${pass.token("keys", cell.column)}`,
      point: `${module}.hook_pattern`, head, query, key, weight: steps.weights[cell.row * pass.keys + cell.column],
      row: rowOf(pass, cell, steps),
    },
    done: pass.interventions,
  };
}

/**
 * Whether the weight at (query, key) can't be set.
 *
 * @param {Steps} steps
 * @param {number} at
 */
export const isHiddenIn = ({ masked, weights }, at) => (masked ? masked[at] === -Infinity : weights[at] === 0);

function rowOf(pass, { row, column }, steps) {
  const { weights } = steps;
  const begin = row * pass.keys;
  return {
    title: `Weights of ${pass.token("queries", row)}`, weights: [...weights.subarray(begin, begin + pass.keys)], labels: pass.labels.keys,
    isHidden: (key) => isHiddenIn(steps, begin + key), key: column, begin: pass.offsets.keys,
  };
}

/** How each changed head is changed, in words, by "layer,head". */
export function changedHeads(pass) {
  const wordsByHead = new Map();
  pass.modules.forEach((module, layer) => {
    for (let head = 0; head < pass.heads; head++) {
      const words = ["hook_z", "hook_pattern", "hook_q", "hook_k", "hook_v"].flatMap((point) =>
        pass.changed.records.filter((record) => record.point === `${module}.${point}` && record.head === head).map((record) => record.words));
      if (words.length) wordsByHead.set(`${layer},${head}`, [...new Set(words)].join("; "));
    }
  });
  return wordsByHead;
}

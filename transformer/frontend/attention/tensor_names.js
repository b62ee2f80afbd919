// Names the tensors to request for each part of an attention.
import { keyHeadOf } from "../attention_config.js";
/** @import { Wanted } from "./fetcher.js" */
/** @import { Overview } from "./pass.js" */

const SCORES = { raw: "hook_raw_scores", scaled: "hook_scaled_scores", capped: "hook_capped_scores", masked: "hook_attn_scores", weights: "hook_pattern" };
const VALUES = { z: "hook_z", result: "hook_result" };

/** The hook points of an attention, by the step of a head's arithmetic that ends there. */
export const STEPS = { ...SCORES, ...VALUES };

/**
 * The names of the tensors that make up parts of a pass.
 *
 * @param {Pick<Overview, "config" | "modules" | "names" | "uniform" | "cap" | "bias">} about
 * @param {Wanted[]} parts
 */
export function namesOf({ config, modules, names, uniform, cap, bias }, parts) {
  const steps = uniform ? [SCORES.weights] : Object.values(SCORES).filter((step) => cap || step !== SCORES.capped);
  return parts.flatMap(([what, layer, head, query]) => {
    const [module, around] = [modules[layer], names[layer]];
    if (what === "head") {
      const shared = keyHeadOf(config, head);
      return [around.q && `${around.q}[:, ${head}]`, around.k && `${around.k}[:, ${shared}]`, `${around.v}[:, ${shared}]`,
        bias && "buckets" in bias && `${module}.relative_bias.weight[:, ${head}]`].filter(Boolean);
    }
    return [
      ...steps.map((step) => `${module}.${step}[${head}, ${query}]`),
      ...Object.values(VALUES).map((point) => `${module}.${point}[${query}, ${head}]`),
      ...[around.before, around.given, around.out, around.after].filter(Boolean).map((name) => `${name}[${query}]`),
      `${module}.out.weight[:, ${head}]`,
    ];
  });
}

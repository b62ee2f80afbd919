// Names the tensors to request for each part of an attention.
import { keyHeadOf } from "../attention_config.js";
/** @import { Wanted } from "./fetcher.js" */
/** @import { Overview } from "./pass.js" */

const STEPS = ["hook_raw_scores", "hook_scaled_scores", "hook_capped_scores", "hook_attn_scores", "hook_pattern"];

/**
 * The names of the tensors that make up parts of a pass.
 *
 * @param {Pick<Overview, "config" | "modules" | "names" | "uniform" | "cap" | "bias">} about
 * @param {Wanted[]} parts
 */
export function namesOf({ config, modules, names, uniform, cap, bias }, parts) {
  const steps = uniform ? STEPS.slice(-1) : STEPS.filter((step) => cap || step !== "hook_capped_scores");
  return parts.flatMap(([what, layer, head, query]) => {
    const [module, around] = [modules[layer], names[layer]];
    if (what === "head") {
      const shared = keyHeadOf(config, head);
      return [around.q && `${around.q}[:, ${head}]`, around.k && `${around.k}[:, ${shared}]`, `${around.v}[:, ${shared}]`,
        bias && "buckets" in bias && `${module}.relative_bias.weight[:, ${head}]`].filter(Boolean);
    }
    return [
      ...steps.map((step) => `${module}.${step}[${head}, ${query}]`),
      ...["hook_z", "hook_result"].map((point) => `${module}.${point}[${query}, ${head}]`),
      ...[around.before, around.given, around.out, around.after].filter(Boolean).map((name) => `${name}[${query}]`),
      `${module}.out.weight[:, ${head}]`,
    ];
  });
}

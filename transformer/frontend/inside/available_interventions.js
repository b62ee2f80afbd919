// The interventions offered for what is open: on a sublayer, one of its heads, the residual stream, or a rule.

import { isCausal } from "../attention_config.js";
import { codeOf } from "../intervention_codes.js";
import { fullName } from "./plain_names.js";

/** As `InterventionControls.show` takes it. focus: what is open, as `focusOf` has it; head, token, source: what is looked at. */
export function interventionsAt(pass, { focus, head, token, source, structure }) {
  const parts = focus ? (focus.part ? [focus.part] : focus.group.parts).flatMap((part) => ofPart(part, head)) : [];
  if (focus?.name) parts.unshift(...ofTensor(pass, focus.name, fullName(focus.name, focus, structure.config), head));
  const isSource = focus?.stack.prefix === "encoder.";
  const index = isSource ? source : token;
  const label = isSource ? pass.labels.source : pass.labels.text;
  const position = index === null || index === undefined ? null : index + (isSource ? 0 : pass.offset);
  return {
    parts: parts.filter((part, at) => parts.findIndex((other) => other.point === part.point && other.head === part.head) === at),
    positions: position === null ? [] : [{ title: `Only at “${label[index]}”, position ${position}`, position }],
    rules: focus ? rulesOf(pass, focus) : [],
    done: pass.interventions,
  };
}

function ofPart(part, head) {
  const parts = [];
  if (part.module && head !== null) parts.push({ title: `Head ${head} of this ${part.title}`, point: `${part.module}.hook_z`, head });
  if (part.out) parts.push({ title: `Output of ${part.title}`, point: part.out, head: null });
  return parts;
}

// A tensor that has a row for each token; weights and scores change by their rules, or by hand on the page Attention.
function ofTensor(pass, name, title, head) {
  const { kind, dims } = pass.describe(name);
  if (kind !== "point" || !dims.includes("pos") || dims.includes("query") || name.endsWith("hook_scale")) return [];
  const which = dims.includes("head") ? head : null;
  return [{ title: which === null ? title : `${title}, head ${which}`, point: name, head: which }];
}

function rulesOf(pass, { group, part }) {
  const within = part ? [part] : group.parts;
  const rules = [];
  for (const { names, title, module, kind } of within) {
    for (const name of names) {
      const where = name.slice(0, name.lastIndexOf(".") + 1);
      const isMask = name.endsWith("attn.hook_mask") && !name.includes("cross_attn") && !name.startsWith("encoder.");
      if (isMask && isCausal(pass.config)) rules.push({ title: "Without the causal mask", code: codeOf("without", { rule: "mask", where }) });
      if (module && name.endsWith("hook_scaled_scores")) rules.push({ title: `Without ÷ √d_head in this ${title}`, code: codeOf("without", { rule: "scale", where }) });
      if (name.endsWith("hook_scale")) rules.push({ title: `Without the norm's division${kind === "ln_final" ? "" : ` in this ${title}`}`, code: codeOf("without", { rule: "norm", where }) });
      if (/hook_(rot_q|position_bias)$/.test(name)) rules.push({ title: `Without positions in this ${title}`, code: codeOf("without", { rule: "positions", where }) });
      if (name.endsWith("hook_pos_embed")) rules.push({ title: "Without positions", code: codeOf("without", { rule: "positions", where }) });
    }
  }
  return rules;
}

// The interventions offered for what is open: on a sublayer, one of its heads, the residual stream, or a rule.

import { codeOf } from "../intervention_controls.js";
import { fullName } from "./plain_names.js";

/** As `Changing.show` takes it. focus: what is open, as `focusOf` has it; head, token, source: what is looked at. */
export function changesAt(pass, { focus, head, token, source, structure }) {
  const parts = focus ? (focus.part ? [focus.part] : focus.group.parts).flatMap((part) => ofPart(part, head)) : [];
  if (focus?.name) parts.unshift(...ofTensor(pass, focus.name, fullName(focus.name, focus, structure.norm), head));
  const isSource = focus?.stack.prefix === "encoder.";
  const place = isSource ? source : token;
  const label = isSource ? pass.labels.source : pass.labels.text;
  const position = place === null || place === undefined ? null : place + (isSource ? 0 : pass.offset);
  return {
    parts: parts.filter((part, at) => parts.findIndex((each) => each.point === part.point && each.head === part.head) === at),
    places: position === null ? [] : [{ title: `Only at “${label[place]}”, position ${position}`, position }],
    rules: focus ? rulesOf(pass, focus) : [],
    done: pass.interventions,
  };
}

function ofPart(part, head) {
  const found = [];
  if (part.module && head !== null) found.push({ title: `Head ${head} of this ${part.title}`, point: `${part.module}.hook_z`, head });
  if (part.out) found.push({ title: `Output of ${part.title}`, point: part.out, head: null });
  return found;
}

// A tensor that has a place for each token; weights and scores change by their rules, or by hand on the page Attention.
function ofTensor(pass, name, title, head) {
  const { kind, dims } = pass.describe(name);
  if (kind !== "point" || !dims.includes("pos") || dims.includes("query") || name.endsWith("hook_scale")) return [];
  const which = dims.includes("head") ? head : null;
  return [{ title: which === null ? title : `${title}, head ${which}`, point: name, head: which }];
}

function rulesOf(pass, { group, part }) {
  const within = part ? [part] : group.parts;
  const found = [];
  for (const { names, title, module, kind } of within) {
    for (const name of names) {
      const where = name.slice(0, name.lastIndexOf(".") + 1);
      const isCausal = name.endsWith("attn.hook_mask") && !name.includes("cross_attn") && !name.startsWith("encoder.");
      if (isCausal) found.push({ title: "Without the causal mask", code: codeOf("without", "mask", where) });
      if (module && name.endsWith("hook_scaled_scores")) found.push({ title: `Without ÷ √d_head in this ${title}`, code: codeOf("without", "scale", where) });
      if (name.endsWith("hook_scale")) found.push({ title: `Without the norm's division${kind === "ln_final" ? "" : ` in this ${title}`}`, code: codeOf("without", "norm", where) });
      if (name.endsWith("hook_pos_embed")) found.push({ title: "Without positions", code: codeOf("without", "positions", where) });
    }
  }
  return found;
}

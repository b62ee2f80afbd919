// The interventions offered for what is open: on a sublayer, one of its heads, the residual stream, or a rule.

import { pointsWithout } from "../intervention_checks.js";
import { RULES, codeOf } from "../intervention_codes.js";
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
  return (part ? [part] : group.parts).flatMap(({ names, title }) => Object.keys(RULES).flatMap((rule) => {
    const points = pointsWithout(pass.metadata, { rule }).filter((point) => names.includes(point));
    const wheres = new Set(points.map((point) => point.slice(0, point.lastIndexOf(".") + 1)));
    const here = group.kind === "block" ? ` in this ${title}` : "";
    return [...wheres].map((where) => ({ title: `Without ${RULES[rule].words}${here}`, code: codeOf("without", { rule, where }) }));
  }));
}

// Describes the selection in words, for screen readers, the line below the picture, and tooltips.

import { isCausal } from "../attention_config.js";
import { counted, percent, plainNumber } from "../number_format.js";
import { firstIn, poolOf, strongestIn } from "./arcs.js";
import { attentionAt } from "./attention_link.js";
import { capital, fullName, layerName, sublayerName } from "./plain_names.js";
import { unitOf } from "./pass.js";
import { shortName } from "./structure.js";

const EVEN = 1e-6; // between two weights that are alike

/** The selection in a sentence or two, with its numbers. */
export function selectionInWords(pass, { chosen, focus, token, scene, structure }) {
  if (focus?.name && chosen.cell) {
    const sentence = `${fullName(focus.name, focus, structure.config)}, ${pass.cellInWords(focus.name, chosen.cell)}`;
    return pass.has(focus.name, headOf(pass, focus.name, chosen.cell)) ? `${sentence}: ${plainNumber(pass.value(focus.name, chosen.cell), 6)}.` : `${sentence}.`;
  }
  if (focus?.name) {
    const { dims, sizes } = pass.describe(focus.name);
    return `${fullName(focus.name, focus, structure.config)}, ${dims.flatMap((dim, at) => (dim === "1" ? [] : counted(sizes[at], unitOf(dim)))).join(" × ")}.`;
  }
  const words = `Token ${token} “${pass.labels.text[token]}”: ${nextInWords(pass, token)}`;
  const part = attentionAt(structure, focus);
  return part ? `${words} ${attentionInWords(pass, scene, structure.locations.get(part.out), token)}` : words;
}

function headOf(pass, name, cell) {
  return cell[pass.partAxis(name)] ?? null;
}

function nextInWords(pass, token) {
  const { data, shape } = pass.outline.next;
  const shares = pass.outline["next.probability"].data;
  const likeliest = Array.from({ length: Math.min(3, shape[1]) }, (_, at) => {
    const entry = token * shape[1] + at;
    return `“${pass.vocabulary[data[entry]]}” ${percent(shares[entry])}`;
  });
  return `predicted ${isCausal(pass.config) ? "next" : "here"} ${likeliest.join(", ")}.`;
}

/** Where a token looks most, in one attention. location: of the attention, as `Structure.locations` has it. */
function attentionInWords(pass, scene, { stack, group, part }, token) {
  const { queries, keys, weights } = scene.weights(part.id);
  const labels = pass.labels[part.crosses || part.id.startsWith("encoder.") ? "source" : "text"];
  const queryLabels = pass.labels[part.id.startsWith("encoder.") ? "source" : "text"];
  const asking = Math.min(token, queryLabels.length - 1);
  const query = poolOf(asking, queryLabels.length, queries);
  const most = strongestIn({ keys, weights }, query);
  const key = firstIn(most, labels.length, keys);
  const { n_heads: heads } = pass.config;
  const head = scene.head ?? (heads === 1 ? 0 : null);
  const where = part.crosses ? sublayerName({ stack, group, part }) : capital(layerName(stack, group));
  const who = `${where}, ${head === null ? `mean of ${heads} heads` : `head ${head}`}: “${queryLabels[asking]}” looks`;
  const seen = weights.subarray(query * keys, (query + 1) * keys).filter((weight) => weight > 0);
  const isEven = seen.length > 1 && Math.max(...seen) - Math.min(...seen) < EVEN;
  const ablated = head !== null && scene.isAblated(part.id, head) ? " (ablated: its output is set to zero)" : "";
  if (isEven) return `${who} equally at all ${seen.length} tokens it can see, ${percent(seen[0])} each${ablated}.`;
  return `${who} most at “${labels[key]}” (position ${key}), ${percent(weights[query * keys + most])}${ablated}.`;
}

/** What happens in a chapter of Play. */
export function chapterInWords(pass, scene, { locations, residual }, { name, zone, prefix }) {
  const location = locations.get(name);
  const token = prefix === "encoder." ? scene.source ?? pass.labels.source.length - 1 : scene.token;
  if (zone === "lane" || name.endsWith("hook_pattern")) return attentionInWords(pass, scene, location, token);
  if (name === "probabilities") return `Token ${token} “${pass.labels.text[token]}”: ${nextInWords(pass, token)}`;
  if (zone !== "strip") return `${fullName(name, location, scene.config)}. ${pass.describe(name).meaning}`;
  const label = `“${pass.labels[prefix === "encoder." ? "source" : "text"][token]}”`;
  const what = location.part.module ? `What ${label} gathered` : `What it makes of ${label} alone`;
  const isLast = location.part === location.group.parts.at(-1) && location.stack.writes;
  const where = residual ? "is added to its residual stream" : "replaces its stream";
  return `${sublayerName(location)}. ${what} ${where}.${isLast ? lensInWords(pass, location.group.layer + 1, token) : ""}`;
}

/** What the logit lens reads at a depth of the stream. */
function lensInWords(pass, depth, token) {
  if (!pass.hasLens(token)) return "";
  const at = depth * pass.outline.lens.shape[1] + token;
  return ` Logit lens: “${pass.vocabulary[pass.outline.lens.data[at]] ?? "?"}”, ${percent(pass.outline["lens.probability"].data[at])}.`;
}

/** What lies under the pointer, a text each. */
export function tipOf(pass, scene, { stack, group, part, row, token }) {
  const where = layerName(stack, group) + (part && group.kind === "block" ? `, ${part.title}` : "");
  const lines = [row ? fullName(row.name, { stack, group, part }, scene.config) : where];
  const entry = row && pass.describe(row.name);
  if (entry) lines.push(entry.meaning);
  if (token !== null) lines.push(`Token ${token} “${pass.labels[stack.tokens][token]}”`);
  if (part?.module && token !== null && !row) lines.push(attentionInWords(pass, scene, { stack, group, part }, token));
  if (entry?.formula) lines.push(`${shortName(row.name)} = ${entry.formula}`);
  if (row) lines.push(row.name);
  return lines;
}

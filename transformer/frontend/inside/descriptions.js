// Describes the selection in words, for screen readers, the line below the picture, and tooltips.

import { percent, plainNumber } from "../numbers.js";
import { firstIn, poolOf, strongestIn } from "./arcs.js";
import { attentionAt } from "./attention_link.js";
import { capital, fullName, layerName, sublayerName } from "./plain_names.js";
import { shortName } from "./structure.js";

const EVEN = 1e-6; // between two weights that are alike

/** The selection in a sentence or two, with its numbers. */
export function selectionInWords(pass, { chosen, focus, token, scene, structure }) {
  if (focus?.name && chosen.cell) {
    const said = `${fullName(focus.name, focus, structure.norm)}, ${pass.inWords(focus.name, chosen.cell)}`;
    return pass.has(focus.name, headOf(pass, focus.name, chosen.cell)) ? `${said}: ${plainNumber(pass.value(focus.name, chosen.cell), 6)}.` : `${said}.`;
  }
  if (focus?.name) {
    const { dims, sizes } = pass.describe(focus.name);
    return `${fullName(focus.name, focus, structure.norm)}, ${dims.map((dim, at) => `${dim} ${sizes[at]}`).join(" × ")}.`;
  }
  const said = `Token ${token} “${pass.labels.text[token]}”: ${nextInWords(pass, token)}`;
  const part = attentionAt(structure, focus);
  return part ? `${said} ${attentionInWords(pass, scene, structure.places.get(part.out), token)}` : said;
}

function headOf(pass, name, place) {
  return place[pass.partAxis(name)] ?? null;
}

function nextInWords(pass, token) {
  const { data, shape } = pass.outline.next;
  const shares = pass.outline["next.probability"].data;
  const likeliest = Array.from({ length: Math.min(3, shape[1]) }, (_, at) => {
    const place = token * shape[1] + at;
    return `“${pass.vocabulary[data[place]]}” ${percent(shares[place])}`;
  });
  return `predicted next ${likeliest.join(", ")}.`;
}

/** Where a token looks most, in one attention. place: of the attention, as `Structure.places` has it. */
function attentionInWords(pass, scene, { stack, group, part }, token) {
  const { queries, keys, weights } = scene.weights(part.id);
  const labels = pass.labels[part.crosses || part.id.startsWith("encoder.") ? "source" : "text"];
  const asked = pass.labels[part.id.startsWith("encoder.") ? "source" : "text"];
  const asking = Math.min(token, asked.length - 1);
  const query = poolOf(asking, asked.length, queries);
  const most = strongestIn({ keys, weights }, query);
  const key = firstIn(most, labels.length, keys);
  const { n_heads: heads } = pass.config;
  const head = scene.head ?? (heads === 1 ? 0 : null);
  const where = part.crosses ? sublayerName({ stack, group, part }) : capital(layerName(stack, group));
  const who = `${where}, ${head === null ? `mean of ${heads} heads` : `head ${head}`}: “${asked[asking]}” looks`;
  const seen = weights.subarray(query * keys, (query + 1) * keys).filter((weight) => weight > 0);
  const isEven = seen.length > 1 && Math.max(...seen) - Math.min(...seen) < EVEN;
  if (isEven) return `${who} equally at all ${seen.length} tokens it can see, ${percent(seen[0])} each.`;
  return `${who} most at “${labels[key]}” (position ${key}), ${percent(weights[query * keys + most])}.`;
}

/** What happens in a chapter of Play. */
export function chapterInWords(pass, scene, { places, residual }, { name, zone, prefix }) {
  const place = places.get(name);
  const token = prefix === "encoder." ? scene.source ?? pass.labels.source.length - 1 : scene.token;
  if (zone === "lane" || name.endsWith("hook_pattern")) return attentionInWords(pass, scene, place, token);
  if (zone !== "strip") return `${fullName(name, place, scene.norm)}. ${pass.describe(name).meaning}`;
  const label = `“${pass.labels[prefix === "encoder." ? "source" : "text"][token]}”`;
  const what = place.part.module ? `What ${label} gathered` : `What it makes of ${label} alone`;
  const isLast = place.part === place.group.parts.at(-1) && place.stack.writes;
  const where = residual ? "is added to its residual stream" : "replaces its stream";
  return `${sublayerName(place)}. ${what} ${where}.${isLast ? lensInWords(pass, place.group.layer + 1, token) : ""}`;
}

/** What the logit lens reads at a depth of the stream. */
function lensInWords(pass, depth, token) {
  if (!pass.hasLens(token)) return "";
  const at = depth * pass.outline.lens.shape[1] + token;
  return ` Logit lens: “${pass.vocabulary[pass.outline.lens.data[at]] ?? "?"}”, ${percent(pass.outline["lens.probability"].data[at])}.`;
}

/** What lies under the pointer, a text each. */
export function tipOf(pass, scene, { stack, group, part, row, token }) {
  const place = layerName(stack, group) + (part && group.kind === "block" ? `, ${part.title}` : "");
  const lines = [row ? fullName(row.name, { stack, group, part }, scene.norm) : place];
  const entry = row && pass.describe(row.name);
  if (entry) lines.push(entry.meaning);
  if (token !== null) lines.push(`Token ${token} “${pass.labels[stack.tokens][token]}”`);
  if (part?.module && token !== null && !row) lines.push(attentionInWords(pass, scene, { stack, group, part }, token));
  if (entry?.formula) lines.push(`${shortName(row.name)} = ${entry.formula}`);
  if (row) lines.push(row.name);
  return lines;
}

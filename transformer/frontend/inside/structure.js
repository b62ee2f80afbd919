// Reads a model's structure from its outline: stacks, in them groups (the embedding, a block, the unembedding), in a
// group parts (attention, feed-forward layer), in a part the tensors that it computes and its parameters.

/** @import { Config, Norm } from "../attention_config.js" */
/** @import { Outline } from "./pass.js" */

/**
 * A sublayer, or an end of the model. module: of an attention; out: what it adds to the stream; after: the stream then.
 *
 * @typedef {object} Part
 * @property {string} id
 * @property {string} kind
 * @property {string} title
 * @property {string} target what is open once it has been clicked
 * @property {string[]} names the tensors that it computes
 * @property {string[]} parameters
 * @property {string | null} [module]
 * @property {boolean} [crosses]
 * @property {string | null} [out]
 * @property {string | null} [after]
 * @property {Norm} [norm] where its norms are
 *
 * @typedef {object} Group
 * @property {string} id
 * @property {string} kind
 * @property {string} title
 * @property {string} [target]
 * @property {number | null} layer
 * @property {Part[]} parts
 *
 * @typedef {object} Stack
 * @property {string} prefix
 * @property {"text" | "source"} tokens
 * @property {number} layers
 * @property {string[][]} depths the names of what the stream is before the first block and after each
 * @property {number} count
 * @property {string} title
 * @property {Group[]} groups
 * @property {boolean} writes
 *
 * @typedef {{ stack: Stack, group: Group, part: Part }} Location of a tensor
 * @typedef {{ stack: Stack, group: Group, part: Part | null, name: string | null }} Focus what is open
 *
 * @typedef {object} Structure
 * @property {Stack[]} stacks
 * @property {Map<string, Location>} locations by tensor
 * @property {boolean} residual
 * @property {Config} config
 * @property {Norm} norm
 * @property {boolean} [parallel]
 */

const BLOCK = /^(encoder\.|decoder\.)?blocks\.(\d+)\.(.+)$/;
const PREFIX = /^(encoder\.|decoder\.)/;
const TITLES = { attn: "attention", cross_attn: "cross-attention", mlp: "feed-forward", embed: "embedding", ln_final: "final norm", head: "prediction head", unembed: "unembedding" };
const MAIN = { embed: "hook_embed", ln_final: "ln_final.hook_out", head: "head.ln.hook_out", unembed: "logits" };

/**
 * @param {Outline} metadata
 * @returns {Structure}
 */
export function structureOf(metadata) {
  const { config, tensors, equations, labels } = metadata;
  const read = parametersBy(equations, tensors);
  /** @type {Stack[]} */
  const stacks = metadata.stacks.map(({ prefix, tokens, layers, heights }) => ({
    prefix, tokens, layers, depths: heights, count: labels[tokens].length, title: prefix.replace(".", ""), groups: [],
    writes: prefix !== "encoder.",
  }));
  /** @type {Map<string, Location>} */
  const locations = new Map();
  for (const { name, kind } of tensors) {
    if (kind === "parameter") continue;
    const stack = stacks.find((candidate) => candidate.prefix === prefixOf(name, stacks));
    const group = groupFor(stack, name);
    const part = partFor(group, stack, name, config);
    part.names.push(name);
    locations.set(name, { stack, group, part });
  }
  for (const stack of stacks) for (const group of stack.groups) for (const part of group.parts) finish(part, read, config, { stack, group, part }, locations);
  return { stacks, locations, residual: config.residual, config, norm: config.norm, parallel: config.parallel_residual };
}

/**
 * What a name, or a location that can be opened, belongs to; null for none of them.
 *
 * @param {Structure} structure
 * @param {string} open
 * @returns {Focus | null}
 */
export function focusOf({ stacks, locations }, open) {
  if (!open) return null;
  if (locations.has(open)) return { ...locations.get(open), name: open };
  for (const stack of stacks) {
    for (const group of stack.groups) {
      if (group.id === open) return { stack, group, part: null, name: null };
      for (const part of group.parts) if (part.id === open) return { stack, group, part, name: null };
    }
  }
  return null;
}

/** The attentions of a model, as parts. @param {Structure} structure */
export function attentionsOf({ stacks }) {
  return stacks.flatMap(({ groups }) => groups.flatMap(({ parts }) => parts.filter(({ module }) => module)));
}

/** Where Escape leads to from what is open: from a tensor to its sublayer, to its block, to the model. */
export function upFrom(structure, open) {
  const focus = focusOf(structure, open);
  if (!focus) return "";
  const isBlock = focus.group.kind === "block";
  if (focus.name) return isBlock ? focus.part.id : "";
  return focus.part && isBlock ? focus.group.id : "";
}

/** A tensor's name as short as it can be beside its part: "q", "ln1.scale", "resid_mid". */
export function shortName(name) {
  return name.replace(PREFIX, "").replace(/^blocks\.\d+\./, "").replace(/^(attn|cross_attn|mlp)\./, "").replace("hook_", "");
}

function prefixOf(name, stacks) {
  return PREFIX.exec(name)?.[1] ?? stacks.find(({ writes }) => writes).prefix;
}

/** @returns {Group} */
function groupFor(stack, name) {
  const block = BLOCK.exec(name);
  const kind = block ? "block" : endOf(name);
  const id = block ? `${stack.prefix}blocks.${block[2]}` : `${stack.prefix}${kind}`;
  /** @type {Group} */
  let group = stack.groups.at(-1);
  if (group?.id !== id) {
    group = { id, kind, title: block ? `layer ${block[2]}` : TITLES[kind], layer: block ? Number(block[2]) : null, parts: [] };
    group.target = block ? id : kind === "unembed" ? MAIN[kind] : `${stack.prefix}${MAIN[kind]}`;
    stack.groups.push(group);
  }
  return group;
}

function endOf(name) {
  if (name === "logits" || name === "probabilities") return "unembed";
  if (name.startsWith("unembed.")) return "unembed";
  if (name.startsWith("head.")) return "head";
  return name.includes("ln_final.") ? "ln_final" : "embed";
}

// The stream after a sublayer belongs to it; before the first, to the first.
/** @returns {Part} */
function partFor(group, stack, name, config) {
  const kind = group.kind === "block" ? sublayerOf(BLOCK.exec(name)[3], stack, config) : group.kind;
  const id = group.kind === "block" ? `${group.id}.${kind}` : group.id;
  let part = group.parts.find((candidate) => candidate.id === id);
  if (!part) {
    part = { id, kind, title: TITLES[kind], target: group.kind === "block" ? id : group.target, names: [], parameters: [] };
    group.parts.push(part);
  }
  return part;
}

function sublayerOf(rest, { prefix }, config) {
  const crosses = prefix === "decoder.";
  if (/^(ln2|ln2_post|mlp)\.|^hook_mlp_out$/.test(rest)) return "mlp";
  if (/^(ln_cross|cross_attn)\.|^hook_(cross_attn_out|resid_cross)$/.test(rest)) return "cross_attn";
  if (rest === "hook_resid_post") return config.d_ff ? "mlp" : crosses ? "cross_attn" : "attn";
  return "attn";
}

/**
 * @param {Part} part
 * @param {Map<string, string[]>} read
 * @param {Config} config
 * @param {Location} location
 * @param {Map<string, Location>} locations
 */
function finish(part, read, config, location, locations) {
  part.parameters = [...new Set(part.names.flatMap((name) => read.get(name) ?? []))];
  for (const name of part.parameters) if (!locations.has(name)) locations.set(name, location);
  if (location.group.kind !== "block") return;
  part.module = part.kind === "mlp" ? null : part.id;
  part.crosses = part.kind === "cross_attn";
  part.out = part.names.find((name) => /\.hook_(attn|cross_attn|mlp)_out$/.test(name)) ?? null;
  part.after = part.names.filter((name) => /hook_resid_(mid|cross|post)$/.test(name)).at(-1) ?? null;
  part.norm = config.norm;
}

/** The parameters that each equation reads, by the name of its result. */
function parametersBy(equations, tensors) {
  const parameters = new Set(tensors.filter(({ kind }) => kind === "parameter").map(({ name }) => name));
  return new Map(equations.map(({ name, operands }) => [
    name, Object.values(operands).flat().map((operand) => operand.name).filter((operand) => parameters.has(operand)),
  ]));
}

// Converts the selection of the page Inside to and from view parameters: there positions count the tokens of the whole
// text, here from the first that the model reads.
import { BEGIN, FOLDS, within } from "./selection.js";
/** @import { PageState } from "../page/page_state.js" */
/** @import { AttentionCell } from "./attention_link.js" */
/** @import { Chosen, Circuit } from "./selection.js" */
/** @import { Outline } from "./pass.js" */

/**
 * What Python says of a pass beside what is asked. offset: the position of the first token that the model reads; prompt: how many tokens
 * that has.
 *
 * @typedef {{ model: string, offset: number, prompt: number }} About
 */

const MODULE = /^((?:encoder|decoder)\.)?blocks\.(\d+)\.(attn|cross_attn)/;

/**
 * As `InsideInstrument.begin` takes it; what the pass hasn't got is as at first.
 *
 * @param {PageState} looked
 * @param {Pick<About, "offset">} about
 * @param {Pick<Outline, "config" | "labels" | "tensors" | "circuits">} outline
 * @returns {Chosen}
 */
export function selectionFrom(looked, { offset }, { config, labels, tensors, circuits }) {
  const open = looked.get("inside") ?? "";
  const isThere = !open || tensors.some(({ name }) => name === open || name.startsWith(`${open}.`));
  const sizes = tensors.find(({ name }) => name === open)?.sizes ?? [];
  const cell = looked.numbers("cell");
  const position = looked.number("place");
  const moment = Number(looked.get("moment") ?? NaN);
  const heads = Object.keys(circuits).length ? config.n_heads : 0; // of a model without attention there is none
  return {
    ...BEGIN,
    open: isThere ? open : "",
    token: position === null ? null : within(position - offset, labels.text.length),
    source: within(looked.number("source_place"), labels.source.length),
    head: looked.get("heads") === "one" ? within(looked.number("head") ?? 0, heads) : null,
    cell: cell?.length === sizes.length && cell.every((at, dim) => at < sizes[dim]) ? cell : null,
    moment: isThere && moment >= 0 ? moment : null,
    folds: FOLDS.filter((fold) => (looked.get("folds") ?? "").split(",").includes(fold)),
    candidate: within(looked.number("candidate"), config.vocab_size),
    circuit: circuitFrom(looked.get("circuit"), circuits, heads),
  };
}

/** @returns {Circuit | null} */
function circuitFrom(text, circuits, heads) {
  const [kind, attention, ...rest] = (text ?? "").split(",");
  const numbers = rest.map(Number);
  const isThere = circuits[attention]?.includes(kind) && [2, 4].includes(numbers.length) && numbers.every((number) => Number.isInteger(number) && number >= 0) && numbers[0] < heads;
  return isThere ? /** @type {Circuit} */ ([kind, attention, ...numbers]) : null;
}

const KINDS = { "encoder.attn": "encoder", "decoder.attn": "decoder", "decoder.cross_attn": "cross", attn: "self" };

/** The kind of the attention that a target belongs to, and its layer; nothing where it belongs to none. */
function attentionOf(target) {
  const [, prefix = "", layer, name] = MODULE.exec(target) ?? [];
  return { kind: KINDS[prefix + name], layer };
}

/**
 * The other way round, for `Looked.set`; the page Attention turns to the same layer and head.
 *
 * @param {Chosen} chosen
 * @param {Pick<About, "offset">} about
 */
export function paramsFrom({ open, token, source, head, cell, moment, folds, candidate, circuit }, { offset }) {
  const { kind, layer } = attentionOf(open);
  return {
    inside: open, place: token === null ? null : token + offset, source_place: source, heads: head === null ? null : "one",
    ...(head !== null && { head }), ...(layer !== undefined && { layer }), ...(kind && kind !== "self" && { attention: kind }), cell: cell?.join(), moment, folds: folds.join(), candidate, circuit: circuit?.join(),
  };
}

/**
 * What to look at on the page Attention to see a head, and a cell of it. Returns { looked, page }: for `Looked.set`, and what the
 * page is to show.
 *
 * @param {AttentionCell} cell
 * @param {Pick<About, "offset" | "prompt">} about
 */
export function toAttention({ module, head, query, key, stage }, { offset, prompt }) {
  const { kind, layer } = attentionOf(module);
  const [queries, keys] = [kind === "encoder" ? 0 : offset, kind === "encoder" || kind === "cross" ? 0 : offset];
  const looked = {
    layer, zoom: null, stage: stage === "weights" ? null : stage, query: query + queries, key: key === null ? null : key + keys,
    ...(head !== null && { head }),
  };
  const isWritten = kind === "self" && Math.max(looked.query, looked.key ?? 0) >= prompt;
  return { looked, page: { ...(kind !== "self" && { attention: kind }), ...(isWritten && { scope: "all" }) } };
}

// What is looked at on the page Inside, as the tab holds it and as the instrument has it: there tokens count from the beginning
// of the whole text, here from the first that the model reads. offset: its place.
import { BEGIN } from "./looked.js";

const FOLDS = ["lens", "who", "checks", "circuits"];
const MODULE = /^((?:encoder|decoder)\.)?blocks\.(\d+)\.(attn|cross_attn)/;

/** As `InsideInstrument.begin` takes it. pass: the outline's metadata. */
export function chosenFrom(looked, { offset }, { tensors, circuits }) {
  const open = looked.get("inside") ?? "";
  const isThere = !open || tensors.some(({ name }) => name === open || name.startsWith(`${open}.`));
  const place = looked.number("place");
  const moment = Number(looked.get("moment") ?? NaN);
  return {
    ...BEGIN,
    open: isThere ? open : "",
    token: place === null || place < offset ? null : place - offset,
    source: looked.number("source_place"),
    head: looked.get("heads") === "one" ? looked.number("head") ?? 0 : null,
    cell: isThere ? looked.numbers("cell") : null,
    moment: isThere && moment >= 0 ? moment : null,
    folds: FOLDS.filter((fold) => (looked.get("folds") ?? "").split(",").includes(fold)),
    candidate: looked.number("candidate"),
    circuit: circuitFrom(looked.get("circuit"), circuits),
  };
}

function circuitFrom(text, circuits) {
  const [kind, attention, ...rest] = (text ?? "").split(",");
  const numbers = rest.map(Number);
  const isThere = circuits[attention]?.includes(kind) && [2, 4].includes(numbers.length) && numbers.every((number) => Number.isInteger(number) && number >= 0);
  return isThere ? [kind, attention, ...numbers] : null;
}

/** The other way round, for `Looked.set`; the page Attention turns to the same layer and head. */
export function lookedFrom({ open, token, source, head, cell, moment, folds, candidate, circuit }, { offset }) {
  const [, , layer] = MODULE.exec(open) ?? [];
  return {
    inside: open, place: token === null ? null : token + offset, source_place: source, heads: head === null ? null : "one",
    ...(head !== null && { head }), ...(layer !== undefined && { layer }), cell: cell?.join(), moment, folds: folds.join(), candidate, circuit: circuit?.join(),
  };
}

/**
 * What to look at on the page Attention to see a head, and a cell of it. place: as `attentionPlace` makes it. prompt: how many
 * tokens that has. Returns { looked, page }: for `Looked.set`, and what the page is to show.
 */
export function toAttention({ module, head, query, key, stage }, { offset, prompt }) {
  const [, prefix = "", layer, name] = MODULE.exec(module);
  const kind = name === "cross_attn" ? "cross" : { "encoder.": "encoder", "decoder.": "decoder", "": "self" }[prefix];
  const [queries, keys] = [kind === "encoder" ? 0 : offset, kind === "encoder" || kind === "cross" ? 0 : offset];
  const looked = {
    layer, zoom: null, stage: stage === "weights" ? null : stage, share: null, query: query + queries, key: key === null ? null : key + keys,
    ...(head !== null && { head }),
  };
  const isWritten = kind === "self" && Math.max(looked.query, looked.key ?? 0) >= prompt;
  return { looked, page: { ...(kind !== "self" && { attention: kind }), ...(isWritten && { scope: "all" }) } };
}

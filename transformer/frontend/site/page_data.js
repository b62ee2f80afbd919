// What an instrument is told of a model and a text on a page without a server: the same as Python tells it in the app.

import { inWords } from "../intervention_codes.js";
import { windowStart } from "../generation/view_params.js";
/** @import { OpenedModel } from "./models.js" */

/**
 * @typedef {object} TypedText
 * @property {string} prompt as it was typed
 * @property {number[]} tokens what the decoder begins with, or an encoder reads
 * @property {number[]} source what an encoder–decoder's encoder reads
 * @property {number[]} written what was generated after it
 * @property {string | null} changes of the model, as a link has them
 */

const ARROW = " → "; // stands for the start token, between the source and what is written from it
const LOOKS_AT = { cross: "at the source", decoder: "at its own words" };
const DRAWN = { temperature: 0.8, top_k: null, top_p: null, seed: 1 }; // of a link that says nothing else
const MOST_WRITTEN = 60; // tokens that both sides of a comparison write
const LONGEST_TITLE = 24; // characters of a prompt that names a column
const LONGEST_BEFORE = 120; // characters shown of what stands before them
const PACES = [["slow", "2 tokens a second"], ["steady", "8 tokens a second"], ["fast", "25 tokens a second"], ["unbounded", "as fast as it can"]];

/** Which attention is shown: the wished one, if the model has it; else its last. @param {OpenedModel} model @param {string | null} wish */
function kindOf({ about }, wish, among = ["self", "encoder", "decoder", "cross"]) {
  const kinds = Object.keys(about.attentions).filter((kind) => among.includes(kind));
  return kinds.includes(wish) ? wish : (kinds.at(-1) ?? null);
}

/** Layer and head to show first. @param {OpenedModel} model @param {string | null} kind */
function openingOf({ about, card: { opening } }, kind) {
  const layers = about.attentions[kind]?.modules.length ?? 0;
  if (!opening) return { layer: kind === "cross" ? layers - 1 : 0, head: 0 };
  const isIts = opening.attention === kind && opening.layer < layers && opening.head < about.config.n_heads;
  return isIts ? { layer: opening.layer, head: opening.head } : { layer: 0, head: 0 };
}

/** What a pass begins with: of a long text, the model reads the end. @param {OpenedModel} model @param {number[]} tokens */
function windowOf({ about: { config } }, tokens) {
  const begin = windowStart(tokens.length, config.context_length);
  return { begin, tokens: tokens.slice(begin) };
}

/** @param {{ tokens: number[], source: number[], changes: string | null, begin?: number }} asked */
const requestOf = ({ tokens, source, changes, begin = 0 }) => ({ tokens: tokens.join(), source: source.join() || null, changes, begin: begin || null });

const interventionsOf = (changes) => (changes ? changes.split("!").map((code) => ({ code, words: inWords(code) })) : []);

/** @param {OpenedModel} model @param {TypedText} text @param {string | null} wish the attention that a link asks for */
export function generationData(model, text, wish) {
  const { about, name, card } = model;
  const kind = kindOf(model, wish, ["self", "decoder", "cross"]);
  const { encoder, ...modules } = Object.fromEntries(Object.entries(about.attentions).map(([one, of]) => [one, of.modules]));
  const choosable = text.source.length && kind ? Object.entries(LOOKS_AT) : [];
  return {
    request: requestOf(text),
    id: [name, text.tokens, text.source, text.changes].join("|"),
    prompt: text.tokens,
    source: text.source,
    written: text.written.join("."),
    attention: kind,
    opening: openingOf(model, kind),
    restored: [name, 0],
    vocabulary: about.config.vocab_size,
    context: about.config.context_length,
    ends: about.card.stop_tokens,
    arrow: ARROW,
    frozen: false,
    title: card.title,
    modules,
    choices: { layers: modules[kind]?.length ?? 0, heads: kind ? about.config.n_heads : 0, attentions: choosable, paces: PACES },
  };
}

/** @param {OpenedModel} model @param {TypedText} text */
export function fillingData(model, text) {
  const modules = model.about.attentions.self?.modules ?? [];
  return {
    request: requestOf(text),
    id: [model.name, text.tokens, text.changes].join("|"),
    prompt: text.tokens,
    mask: model.about.card.mask_token_id,
    separator: model.about.config.separator_token_id ?? null,
    modules,
    layers: modules.length,
    heads: modules.length ? model.about.config.n_heads : 0,
    opening: openingOf(model, "self"),
    frozen: false,
  };
}

/**
 * @param {OpenedModel} model
 * @param {TypedText} text
 * @param {string | null} wish
 * @param {string[]} following in cross-attention, the labels of the tokens that were chosen
 */
export function attentionData(model, text, wish, following) {
  const kind = kindOf(model, wish);
  if (kind === null) return null;
  const { begin, tokens } = windowOf(model, [...text.tokens, ...text.written]);
  return {
    request: requestOf({ ...text, tokens, begin }),
    kind,
    offsets: { queries: kind === "encoder" ? 0 : begin, keys: kind === "self" || kind === "decoder" ? begin : 0 },
    begin,
    opening: openingOf(model, kind),
    next: kind === "cross" ? following.slice(begin, begin + tokens.length) : null,
    title: model.card.title,
    model: model.name,
    interventions: interventionsOf(text.changes),
  };
}

/** @param {OpenedModel} model @param {TypedText} text */
export function insideData(model, text) {
  const { begin, tokens } = windowOf(model, [...text.tokens, ...text.written]);
  return {
    request: requestOf({ ...text, tokens, begin }),
    offset: begin,
    prompt: text.tokens.length,
    title: model.card.title,
    model: model.name,
    interventions: interventionsOf(text.changes),
  };
}

/**
 * A view of the page What if: the model with its changes and without them, or with two prompts.
 *
 * @param {OpenedModel} model
 * @param {TypedText} text
 * @param {TypedText | null} other the other prompt
 * @param {URLSearchParams} parameters
 */
export function whatIfData(model, text, other, parameters) {
  const { about, tokenizer } = model;
  const sides = other ? [text, other] : [{ ...text, changes: null }, text];
  const room = text.source.length ? about.config.context_length - text.tokens.length : MOST_WRITTEN;
  const drawn = Object.fromEntries(Object.entries({ ...DRAWN, max_new_tokens: Math.min(room, MOST_WRITTEN) }).map(([name, value]) => [name, parameters.get(name) ?? value]));
  return {
    request: requestOf(text),
    requests: sides.map((side) => requestOf(side)),
    titles: other ? sides.map(({ prompt }) => `“${prompt.length > LONGEST_TITLE ? `…${prompt.slice(-LONGEST_TITLE)}` : prompt}”`) : ["unchanged", "changed"],
    texts: sides.map(({ prompt, source }) => (source.length ? "" : prompt.slice(-LONGEST_BEFORE))),
    lengths: sides.map(({ tokens }) => tokens.length),
    after: sides.map(({ tokens }) => tokenizer.label(tokens.at(-1))),
    kinds: about.kinds,
    writes: other ? null : drawn,
    ends: about.card.stop_tokens,
    modules: Object.values(about.attentions).flatMap(({ modules }) => modules),
    heads: about.config.n_heads,
    interventions: interventionsOf(text.changes),
  };
}

/** A view of the page Masks: what else is changed is changed with the mask and without it. @param {OpenedModel} model @param {TypedText} text */
export function masksData(model, text) {
  const { about, tokenizer } = model;
  const { begin, tokens } = windowOf(model, text.tokens);
  const kept = (text.changes ?? "").split("!").filter((code) => code && !code.startsWith("without~mask"));
  const layers = about.attentions.self?.modules.length ?? 0;
  return {
    request: requestOf(text),
    requests: [kept, [...kept, "without~mask~"]].map((codes) => requestOf({ ...text, tokens, begin, changes: codes.join("!") || null })),
    tokens,
    labels: tokenizer.labels(tokens),
    offset: begin,
    kinds: about.kinds,
    windows: Array.from({ length: layers }, (_, layer) => about.config.attention_windows?.[layer] ?? 0),
  };
}

/** A view of the page Positions, which needs no model. @param {URLSearchParams} parameters */
export function positionsData(parameters) {
  const whole = (name, usual) => Number(parameters.get(name) ?? usual);
  const [length, position] = [whole("length", 64), whole("position", 0)];
  const positions = [position, Math.min(position + whole("shift", 1), length - 1)];
  return { request: {}, length, width: whole("width", 64), base: whole("base", 10_000), positions };
}

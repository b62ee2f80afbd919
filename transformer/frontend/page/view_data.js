// What a view is told of a page: the request that it makes, and all else about it, from the model, the page state and the text.

import { ApiError } from "../api_error.js";
import { windowOf } from "../attention_config.js";
import { inWords } from "../intervention_codes.js";
import { windowStart } from "../generation/view_params.js";
import { removesOrder } from "../positions/orders.js";
import { whatIfData } from "../what_if/data.js";
import { kindOf, readPrompt } from "./text_reading.js";
/** @import { Parameters } from "../api.js" */
/** @import { Model } from "./answers.js" */
/** @import { StateReader } from "./page_state.js" */
/** @import { ListedModel } from "./shell.js" */
/** @import { PageText } from "./text_reading.js" */

/**
 * @typedef {object} Choice what is chosen beside a view: one of some values of a parameter
 * @property {string} name
 * @property {string} label
 * @property {string} value
 * @property {[value: string, words: string][]} options
 * @property {string[]} resets parameters that mean something else with another value
 *
 * @typedef {object} ViewData
 * @property {string} view a page's title, or "Filling"
 * @property {Parameters} request
 * @property {Record<string, any>} about
 * @property {Choice[]} [choices]
 * @property {string[]} [notes] sentences below the view's heading
 * @property {Record<string, Model>} models those that the view shows, by name
 * @property {boolean} [saysChanges] whether the view says what is changed, so that the page needn't
 *
 * @typedef {Omit<ViewData, "view" | "models"> & { models?: Model[] }} ViewInput models: others than the page's
 *
 * @typedef {{ open: (name: string) => Promise<Model>, catalogue: ListedModel[] }} Others the other models there are
 *
 * @typedef {object} WholeText prompt and what follows
 * @property {number[]} tokens that are read: an encoder–decoder's answer without its end
 * @property {number[]} ids of all tokens
 * @property {string[]} labels of all tokens
 * @property {string[]} next the label of the token that was chosen after each
 * @property {boolean} isWritten
 */

const ARROW = " → "; // stands for the start token, between the source and what is written from it
const LONGEST_ANSWER = 200; // tokens of what an encoder–decoder would write
const PACES = [["slow", "2 tokens a second"], ["steady", "8 tokens a second"], ["fast", "25 tokens a second"], ["unbounded", "as fast as it can"]];
const LOOKS_AT = { cross: "at the source", decoder: "at its own words" };
const KINDS = {
  encoder: ["Encoder: the source attends to itself", "Every token of the source attends to every other: there is no causal mask."],
  decoder: ["Decoder: the text attends to itself", "Each token of the decoder attends to itself and to those before it."],
  cross: ["Cross: the text attends to the source", "A row shows what the decoder attended to in the source when it chose the token after the arrow."],
};
const MOST_SHOWN = 96; // tokens of a mask: a longer one looks the same
const FEW_TOKENS = 32; // that are always shown
const FEWEST_SHOWN = 8;
const MOST_BEFORE = 8; // tokens outside the context that are drawn before it
const MOST_COMPUTE = 90e9; // parameters times tokens that masking each token in turn may cost, as in transformer/api/predictions.py
const FEWEST_MASKED = 8; // whatever that costs
const LONGEST_SHUFFLED = 48; // tokens of a prompt that are read, from the end: what can be taken in at a glance
const SHUFFLES = 8; // random orders of a text that are tried
const MANY_PARAMETERS = 40_000_000; // of a model that takes its time, as in transformer/api/open_models.py: one order is tried

/** Views that show something without a model, or without a text. @type {Record<string, (model: Model | null, text: PageText | null) => ViewInput>} */
const WITHOUT_MODEL = { Positions: positionsData };

/** @type {Record<string, (model: Model, state: StateReader, text: PageText, others: Others) => ViewInput | Promise<ViewInput>>} */
const WITH_MODEL = {
  Generate: (model, state, text) => generationData(model, state, text), Filling: fillingData, Attention: attentionData, Inside: insideData,
  Masks: masksData, "What if": (model, state, text, others) => whatIfData(model, state, text, { ...others, wholeOf }),
};

/** @type {Others} */
const NO_OTHERS = { catalogue: [], open: () => Promise.reject(new ApiError("There is no other model here.")) };

/** Whether a page's view needs a model. @param {string} page */
export const needsModel = (page) => !Object.hasOwn(WITHOUT_MODEL, page);

/**
 * Rejects with an ApiError that says why there is nothing to show.
 *
 * @param {string} page
 * @param {StateReader} state
 * @param {Model | null} model
 * @param {PageText | null} text
 * @param {Others} [others]
 * @returns {Promise<ViewData>}
 */
export async function viewData(page, state, model, text, others = NO_OTHERS) {
  const view = page === "Generate" && model.about.config.architecture === "encoder-only" ? "Filling" : page;
  const { models = [], about, ...input } = needsModel(page) ? await WITH_MODEL[view](model, state, text, others) : WITHOUT_MODEL[page](model, text);
  const told = model?.newWords ? { ...about, newWords: model.newWords } : about;
  return { view, ...input, about: told, models: Object.fromEntries([...(model ? [model] : []), ...models].map((each) => [each.name, each])) };
}

/** Layer and head to show first. @param {Model} model @param {string | null} kind */
function openingOf({ about, card: { opening } }, kind) {
  const layers = about.attentions[kind]?.modules.length ?? 0;
  if (!opening) return { layer: kind === "cross" ? layers - 1 : 0, head: 0 };
  if (opening.attention !== kind) return { layer: 0, head: 0 };
  return { layer: opening.layer < layers ? opening.layer : 0, head: opening.head < about.config.n_heads ? opening.head : 0 };
}

/** The pass that a text is read in: of a long one the model reads the end. @param {Model} model @param {PageText} text @param {number[]} tokens */
function passOver({ about: { config } }, { begin }, tokens) {
  const start = windowStart(tokens.length, config.context_length);
  return { tokens: tokens.slice(start), begin: begin + start, start };
}

/** @param {{ tokens: number[], source: number[], changes: string | null, begin?: number }} asked @returns {Parameters} */
const requestOf = ({ tokens, source, changes, begin = 0 }) => ({ tokens: tokens.join(), source: source.join() || null, changes, begin: begin || null });

const interventionsOf = (changes) => (changes ? changes.split("!").map((code) => ({ code, words: inWords(code) })) : []);

/** What files of a model are called, and what it is called where it is changed. @param {Model} model */
const fileNameOf = ({ name, fileName, isOwn, card: { title } }) => (fileName ?? (isOwn ? title : name)).replaceAll(/[/\s]+/g, "-");

/** The same for the same prompt and source of the same model, changed in the same way. @param {Model} model @param {PageText} text */
const identityOf = ({ name, version, newWords }, { tokens, source, changes }) => [name, version, tokens, source, changes, newWords].join("|");

const labelOf = ({ about: { kinds } }, id) => kinds?.[id]?.[0] ?? `#${id}`;

/** Prompt and what follows: of an encoder–decoder that has written nothing, what it would write. @param {Model} model @param {PageText} text @returns {Promise<WholeText>} */
async function wholeOf(model, text) {
  const { tokens, source, written } = text;
  const isWritten = written.length > 0;
  const following = isWritten || !source.length ? written.map((id) => ({ id, label: labelOf(model, id) })) : await answerOf(model, text);
  const isEnded = source.length > 0 && model.about.card.stop_tokens.includes(following.at(-1)?.id); // nothing is looked up from the end token
  const read = isEnded ? following.slice(0, -1) : following;
  const labels = [...(source.length ? tokens.map((id) => labelOf(model, id)) : text.read.labels), ...following.map(({ label }) => label)];
  return { tokens: [...tokens, ...read.map(({ id }) => id)], ids: [...tokens, ...following.map(({ id }) => id)], labels, next: labels.slice(1), isWritten };
}

/** Another prompt, as interventions read it: of an encoder–decoder, with what it would write. @param {Model} model @param {string} prompt */
export async function otherPromptOf(model, prompt) {
  const text = await readPrompt(model, prompt, "plain");
  const { tokens } = await wholeOf(model, { ...text, written: [], changes: null });
  return { tokens, source: text.source };
}

/** What an encoder–decoder would write. @param {Model} model @param {PageText} text @returns {Promise<{ id: number, label: string }[]>} */
async function answerOf(model, { tokens, source, changes }) {
  const most = Math.min(LONGEST_ANSWER, model.about.config.context_length - tokens.length);
  const api = model.apiOf({ tokens: tokens.join(), source: source.join(), changes }, { computed: () => {} });
  const answer = [];
  for await (const { event, data } of api.stream("generate", { temperature: 0, max_new_tokens: most })) {
    if (event === "token") answer.push({ id: data.id, label: data.kinds?.[data.id]?.[0] ?? labelOf(model, data.id) });
  }
  return answer;
}

/** @param {Model} model @param {StateReader} state @param {PageText} text @returns {ViewInput} */
function generationData(model, state, text) {
  const { about } = model;
  const kind = kindOf(about.attentions, state.get("attention"), ["self", "decoder", "cross"]);
  const { encoder, ...modules } = Object.fromEntries(Object.entries(about.attentions).map(([one, of]) => [one, of.modules]));
  return {
    request: requestOf(text),
    about: {
      id: identityOf(model, text), prompt: text.tokens, source: text.source, written: text.written.join("."), attention: kind, opening: openingOf(model, kind),
      restored: ["", state.arrivals], vocabulary: about.config.vocab_size, context: about.config.context_length, ends: about.card.stop_tokens,
      arrow: ARROW, frozen: text.isOutdated ?? false, title: fileNameOf(model), model: fileNameOf(model), modules,
      choices: {
        layers: modules[kind]?.length ?? 0, heads: kind ? about.config.n_heads : 0, paces: PACES,
        attentions: text.source.length && kind ? Object.entries(LOOKS_AT) : [],
      },
    },
  };
}

/** @param {Model} model @param {StateReader} _ @param {PageText} text @returns {ViewInput} */
function fillingData(model, _, text) {
  const { config, card, attentions } = model.about;
  const modules = attentions.self?.modules ?? [];
  return {
    request: requestOf(text),
    about: {
      id: identityOf(model, { ...text, changes: null }), // with a change of the model, what was filled in stays
      prompt: text.tokens, mask: card.mask_token_id, separator: config.separator_token_id ?? null, modules,
      layers: modules.length, heads: modules.length ? config.n_heads : 0, opening: openingOf(model, "self"), frozen: text.isOutdated ?? false,
    },
  };
}

/** @param {Model} model @param {StateReader} state @param {PageText} text @returns {Promise<ViewInput>} */
async function attentionData(model, state, text) {
  const { attentions, config } = model.about;
  const kind = kindOf(attentions, state.get("attention"));
  if (kind === null) throw new ApiError("This model has no attention: no token looks at another.");
  const isTranslator = text.source.length > 0;
  const whole = await wholeOf(model, text);
  const shown = isTranslator || state.get("scope") === "all" ? whole.tokens : text.tokens;
  const { tokens, begin, start } = passOver(model, text, shown);
  const choices = [];
  if (isTranslator) choices.push({ name: "attention", label: "Attention", value: kind, options: Object.keys(KINDS).filter((each) => attentions[each]).map((each) => [each, KINDS[each][0]]), resets: ["query", "key", "zoom"] });
  else if (config.architecture === "decoder-only") choices.push(...scopeChoice(whole, state));
  return {
    request: requestOf({ ...text, tokens, begin }),
    about: {
      kind, offsets: { queries: kind === "encoder" ? 0 : begin, keys: kind === "self" || kind === "decoder" ? begin : 0 }, begin: passOver(model, text, whole.tokens).begin,
      opening: openingOf(model, kind), next: kind === "cross" ? whole.next.slice(start, start + tokens.length) : null, title: fileNameOf(model),
      model: fileNameOf(model), interventions: interventionsOf(text.changes),
    },
    choices, notes: isTranslator ? [`${KINDS[kind][1]}${whole.isWritten ? "" : " The text isn't written yet: the model would write it."}`] : [],
  };
}

/** @param {Model} model @param {StateReader} _ @param {PageText} text @returns {Promise<ViewInput>} */
async function insideData(model, _, text) {
  const whole = await wholeOf(model, text);
  const { tokens, begin, start } = passOver(model, text, whole.tokens);
  const { config } = model.about;
  const notes = [];
  if (start) {
    let first = 0; // the length from which on texts are read from here
    while (windowStart(first, config.context_length) !== start) first += 1;
    const older = config.architecture !== "encoder-only" && first > start + 1 ? ` Logits before position ${first} came from earlier windows and differ.` : "";
    notes.push(`The text is longer than the context, so the model reads its last ${tokens.length} tokens, from position ${begin} on.${older}`);
  }
  if (text.source.length && !whole.isWritten) notes.push("No text has been generated yet, so the decoder has read what the model would generate.");
  return {
    request: requestOf({ ...text, tokens, begin }),
    about: { offset: begin, prompt: text.tokens.length, title: fileNameOf(model), model: fileNameOf(model), interventions: interventionsOf(text.changes) },
    notes,
  };
}

/** A text's masks, and what the model predicts under its own and under another. @param {Model} model @param {StateReader} state @param {PageText} text @returns {Promise<ViewInput>} */
async function masksData(model, state, text) {
  const { config, card } = model.about;
  const isEncoder = config.architecture === "encoder-only";
  const isTranslator = text.source.length > 0;
  const whole = await wholeOf(model, text);
  const [ids, read] = isTranslator || state.get("scope") === "all" ? [whole.ids, whole.tokens] : [text.tokens, text.tokens];
  const { tokens, begin, start } = passOver(model, text, read);
  const { most, shown, first, asked } = shownTokens(model, tokens, state);
  const codes = (text.changes ?? "").split("!").filter(Boolean);
  const kept = codes.filter((code) => isEncoder || !code.startsWith("without~mask~"));
  const requestWith = (/** @type {string[]} */ changes) => requestOf({ ...text, tokens, begin, changes: changes.join("!") || null });
  const padded = passOver(model, text, isTranslator ? text.source : text.tokens);
  const paddedShown = shownOf(padded.tokens.length, state);
  return {
    request: requestWith(kept),
    about: {
      isEncoder, isTranslator, other: requestWith([...kept, isEncoder ? "without~later~" : "without~mask~"]),
      windows: Array.from({ length: config.n_layers }, (_, layer) => windowOf(config, layer)).map((size) => (size === Infinity ? 0 : size)),
      tokens, next: ids.slice(start + 1, start + 1 + tokens.length), labels: whole.labels.slice(start, start + tokens.length), offset: begin,
      most: most > FEW_TOKENS ? most : null, shown, first, row: asked - first, mask: card.mask_token_id, context: config.context_length, outside: begin,
      before: shown === tokens.length ? whole.labels.slice(Math.max(start - MOST_BEFORE, 0), start) : [], pad: config.pad_token_id ?? config.vocab_size,
      padded: { ids: padded.tokens.slice(-paddedShown), labels: text.read.labels.slice(-paddedShown), offset: padded.begin + padded.tokens.length - paddedShown },
      title: fileNameOf(model),
    },
    choices: config.architecture === "decoder-only" ? scopeChoice(whole, state) : [], notes: notesOnMasks(config, codes.filter((code) => !kept.includes(code))),
  };
}

/** How many of some tokens the page Masks shows. @param {number} most @param {StateReader} state */
function shownOf(most, state) {
  return most <= FEW_TOKENS ? most : Math.min(Math.max(Number(state.get("masks_shown")) || FEW_TOKENS, FEWEST_SHOWN), most);
}

/**
 * The tokens that it shows, from the end; of an encoder the token that it is asked about is among them.
 *
 * @param {Model} model
 * @param {number[]} tokens
 * @param {StateReader} state
 * @returns {{ most: number, shown: number, first: number, asked: number }} most: that can be shown; asked: the first mask, or the last token
 */
function shownTokens({ about: { config, card }, card: { parameters = 0 } }, tokens, state) {
  const count = tokens.length;
  if (config.architecture !== "encoder-only") {
    const most = Math.min(count, MOST_SHOWN);
    const shown = shownOf(most, state);
    return { most, shown, first: count - shown, asked: count - 1 };
  }
  const affordable = Math.max(Math.floor(MOST_COMPUTE / Math.max(parameters * count, 1)), FEWEST_MASKED);
  const most = Math.min(count, MOST_SHOWN, affordable);
  const shown = shownOf(most, state);
  const asked = tokens.includes(card.mask_token_id) ? tokens.indexOf(card.mask_token_id) : count - 1;
  return { most, shown, first: Math.min(count - shown, Math.max(asked - Math.floor(shown / 2), 0)), asked };
}

/** @param {import("../engine/live_model.js").Config} config @param {string[]} removed codes of changes that take the mask away @returns {string[]} */
function notesOnMasks({ architecture, n_layers: layers }, removed) {
  const isEncoder = architecture === "encoder-only";
  const notes = isEncoder ? ["An encoder reads a text that is all there, and predicts what is masked in it. Nothing else has to be hidden, so it has no causal mask: every token sees those after it, too."] : [];
  if (!layers) notes.push(`This model has no layers, and so no attention and no mask${isEncoder ? ": it predicts each token from itself." : " to take away: it predicts the next token from one token alone."}`);
  const compared = layers ? " Here the first reading has the whole mask all the same, to compare with." : "";
  if (removed.length) notes.push(`It is changed now: ${removed.map(inWords).join("; ")}.${compared}`);
  return notes;
}

/** Whether a view is of the prompt, or of all of the text. @param {WholeText} whole @param {StateReader} state @returns {Choice[]} */
function scopeChoice({ isWritten }, state) {
  if (!isWritten) return [];
  return [{ name: "scope", label: "Text", value: state.get("scope") ?? "prompt", options: [["prompt", "The prompt"], ["all", "Prompt and generated text"]], resets: [] }];
}

/** Of the page Positions: what the model itself uses, and the text that is read in two orders; null where there is none. @param {Model | null} model @param {PageText | null} text @returns {ViewInput} */
function positionsData(model, text) {
  if (!model) return { request: {}, about: { model: null, text: null } };
  const { config, card, attentions, tensors, equations } = model.about;
  const learned = tensors.filter(({ name }) => name.endsWith("pos_embed.weight")).map(({ name }) => name);
  const slopes = Object.values(attentions).map(({ bias }) => bias?.slopes).find(Boolean) ?? null;
  const about = {
    model: {
      title: model.card.title, file: fileNameOf(model), config, equations, hasAttention: Object.keys(attentions).length > 0, mask: card.mask_token_id,
      learned: learned.find((name) => name.startsWith("decoder.")) ?? learned[0] ?? null, slopes, shuffles: (model.card.parameters ?? 0) >= MANY_PARAMETERS ? 1 : SHUFFLES,
    },
  };
  if (!text) return { request: {}, about: { ...about, text: null } };
  const isTranslator = text.source.length > 0;
  const { tokens, begin, start } = passOver(model, text, isTranslator ? text.source : text.tokens);
  const masks = card.mask_token_id === null ? -1 : tokens.indexOf(card.mask_token_id);
  const asked = config.architecture === "encoder-only" && masks >= 0 ? masks : tokens.length - 1;
  const end = Math.max(tokens.length - LONGEST_SHUFFLED, 0);
  const first = config.architecture === "encoder-only" ? Math.min(end, Math.max(asked - LONGEST_SHUFFLED / 2, 0)) : end; // of an encoder the mask is among them
  const read = tokens.slice(first, first + LONGEST_SHUFFLED);
  const codes = (text.changes ?? "").split("!").filter(Boolean);
  const kept = codes.filter((code) => !removesOrder(code));
  const request = requestOf({ tokens: isTranslator ? text.tokens : read, source: isTranslator ? read : [], changes: kept.join("!") || null, begin: isTranslator ? 0 : begin + first });
  return { request, about: { ...about, text: { isTranslator, read, labels: text.read.labels.slice(start + first, start + first + read.length), asked: isTranslator ? text.tokens.length - 1 : asked - first, isCut: read.length < (isTranslator ? text.source : text.tokens).length, kept, removes: kept.length < codes.length } } };
}

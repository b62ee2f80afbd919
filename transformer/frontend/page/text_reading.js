// Reads a prompt: its tokens, and in a sentence what a model can't read of it. (The server's half is GET /api/tokens.)

import { ApiError } from "../api_error.js";
import { changesOn, readChanges, withoutEffect } from "../changes.js";
import { withNames } from "../engine/new_words.js";
import { tokenizerFrom } from "../engine/tokenizer.js";
import { grammarOf, strangeIn } from "./grammar.js";
import { inWords } from "../intervention_codes.js";
import { windowStart } from "../generation/view_params.js";
/** @import { AboutModel } from "../engine/live_model.js" */
/** @import { Model } from "./answers.js" */
/** @import { Slip } from "./grammar.js" */
/** @import { PageState, StateReader } from "./page_state.js" */

/**
 * @typedef {{ text: string, position: number }} UnknownPiece position: in characters, from 0
 *
 * @typedef {object} ReadText
 * @property {number[]} tokens empty for a text with unknown pieces
 * @property {string[]} labels
 * @property {UnknownPiece[]} unknown
 * @property {string[]} [new_words] that the model reads as such
 * @property {string | null} [problem] why the text doesn't suit the model's task
 * @property {string | null} [known] the text without what is unknown
 * @property {string[]} [words] all words of a small vocabulary, where something is unknown
 * @property {string | null} [chat] the text in the model's chat template
 * @property {number} [begin] the position of the first token, of a text whose beginning isn't there
 *
 * @typedef {object} ReadPrompt
 * @property {string} prompt as it was typed
 * @property {number[]} tokens what a decoder continues, or an encoder reads
 * @property {number[]} source what an encoder–decoder's encoder reads
 * @property {number} begin the position of the first token
 * @property {ReadText} read
 *
 * @typedef {object} OfText what a page's text has beside its prompt
 * @property {number[]} written what was generated after it
 * @property {string | null} changes those of the model that are on, as a link has them
 * @property {boolean} [isOutdated] whether something else has been typed since, which can't be read
 *
 * @typedef {ReadPrompt & OfText} PageText
 *
 * @typedef {string | { sentence: string, slips: Slip[] }} Notice what is said, and words that it offers to correct
 */

const MOST_WORDS = 60; // of a vocabulary that is listed
const PASSES = 20; // in which unknown pieces are taken out of a text
const EMPTY = "The prompt is empty. Type a text or pick an example.";
const NAMED = 6; // unknown pieces that a sentence names

/** A prompt can't be read. */
export class UnreadableText extends ApiError {
  /** @param {string} sentence @param {Partial<ReadText>} [read] */
  constructor(sentence, read = {}) {
    super(sentence, { parameter: "prompt" });
    this.read = read;
  }
}

/** There is nothing to read. */
export class EmptyPrompt extends UnreadableText {
  constructor() {
    super(EMPTY);
  }
}

/** @param {Notice} notice */
export const sentenceIn = (notice) => (typeof notice === "string" ? notice : notice.sentence);

/** @param {any} json a tokenizer.json @param {AboutModel} about */
export function tokenizerOf(json, { card }) {
  return tokenizerFrom(json, { readsNames: card.mask_token_id !== null });
}

/** @param {ReturnType<typeof tokenizerFrom>} own a model's @param {string} text @param {string[]} [words] new ones of what is read with it @returns {ReadText} */
export function readWith(own, text, words = []) {
  const tokenizer = own.withNewWords([...words, text]);
  const { newWords } = tokenizer;
  const unknown = tokenizer.unknownPieces(text);
  if (unknown.length) {
    const problem = unknownSentence(unknown, tokenizer.limit);
    return { tokens: [], labels: [], unknown, new_words: newWords, problem, known: withoutUnknown(tokenizer, text), words: wordsOf(own) };
  }
  const tokens = tokenizer.encode(text);
  return { tokens, labels: tokenizer.labels(tokens), new_words: newWords, unknown };
}

/** A text without its unknown pieces; what is left may join to others. */
function withoutUnknown(tokenizer, text) {
  let left = Array.from(text);
  for (let pass = 0; pass < PASSES; pass++) {
    const unknown = tokenizer.unknownPieces(left.join(""));
    if (!unknown.length) return left.join("");
    const gone = new Set(unknown.flatMap((piece) => Array.from(piece.text, (_, at) => piece.position + at)));
    left = left.filter((_, at) => !gone.has(at));
  }
  return "";
}

/** All words of a model that knows few; of one that reads characters, or knows many, none. */
function wordsOf(tokenizer) {
  if (tokenizer.vocabSize > MOST_WORDS) return [];
  return tokenizer.labels(Array.from({ length: tokenizer.vocabSize }, (_, id) => id)).filter((word) => /^\p{L}{2,}$/u.test(word)).sort();
}

/** What is said of pieces that a model doesn't know. @param {UnknownPiece[]} unknown @param {string} [limit] of the new words that it reads */
export function unknownSentence(unknown, limit = "") {
  const listed = unknown.slice(0, NAMED).map(({ text, position }) => `“${text}” (character ${position + 1})`).join(", ");
  const more = unknown.length > NAMED ? `, and ${unknown.length - NAMED} more` : "";
  return `This model has never seen ${listed}${more}.${limit} Remove ${unknown.length === 1 ? "it" : "them"}, or pick another model.`;
}

/**
 * What a prompt reads as. Rejects with an `UnreadableText`.
 *
 * @param {Model} model
 * @param {string} prompt
 * @param {string} [reads] "chat" or "plain", of a model that was tuned to answer
 * @returns {Promise<ReadPrompt>}
 */
export async function readPrompt({ about: { config, card }, read: readBy }, prompt, reads = "chat") {
  if (!prompt) throw new EmptyPrompt();
  const read = await readBy(prompt, reads);
  const { tokens, problem = null, begin = 0 } = read;
  if (problem) throw new UnreadableText(problem, read);
  if (!tokens.length) throw new EmptyPrompt();
  const isTranslator = config.architecture === "encoder-decoder";
  const over = tokens.length - config.context_length;
  if (over > 0 && (isTranslator || config.architecture === "encoder-only")) { // an encoder has no newest tokens that would do
    throw new UnreadableText(`The ${isTranslator ? "source" : "prompt"} has ${counted(tokens.length)} tokens, and this model reads at most ${counted(config.context_length)}. Take ${counted(over)} away.`, read);
  }
  return { prompt, read, begin, tokens: isTranslator ? card.start_tokens : tokens, source: isTranslator ? tokens : [] };
}

/** A model that calls the new words of what was read by their names, in all its answers, and shares them with what it reads. @param {Model} model @param {ReadText | undefined} read @returns {Model} */
export function namedAfter(model, read) {
  const newWords = read?.new_words ?? [];
  if (!newWords.length) return model;
  return {
    ...model, newWords, about: withNames(model.about, newWords), read: (text, reads, given = newWords) => model.read(text, reads, given),
    apiOf: (request, options) => model.apiOf({ new_words: newWords, ...request }, options),
  };
}

/**
 * What a page state's text reads as. Rejects with an `UnreadableText`.
 *
 * @param {Model} model
 * @param {StateReader} state
 * @returns {Promise<PageText>}
 */
export async function textOf(model, state) {
  const { about, card: { examples } } = model;
  const read = await readPrompt(model, state.get("prompt") ?? examples[0] ?? "", state.get("reads") ?? undefined);
  const ids = (state.get("written") ?? "").split(".").filter((id) => /^\d{1,7}$/.test(id)).map(Number);
  return {
    ...read,
    written: ids.every((id) => id < about.config.vocab_size) ? ids : [],
    changes: changesOn(readChanges(state.get("changes"), about).now).join("!") || null,
  };
}

/** What a visitor should know of a text that was read. @param {Model} model @param {PageState} state @param {PageText} text @returns {Notice[]} */
export function noticesOf({ about }, state, { prompt, tokens, source, written, changes }) {
  const { attentions, config } = about;
  const grammar = grammarOf(about);
  /** @type {Notice[]} */
  const notices = [...(grammar ? strangeIn(grammar, prompt) : []), ...readChanges(state.get("changes"), about).problems];
  const idle = changes ? withoutEffect(changes.split("!"), { tokens: tokens.length + written.length, source: source.length }) : [];
  if (idle.length) notices.push(`No effect on this text: ${idle.map(inWords).join("; ")}. The text is too short.`);
  const begin = windowStart(tokens.length, config.context_length);
  if (begin && !source.length && Object.keys(attentions).length) { // without layers a model reads the last token alone
    notices.push(`The prompt has ${counted(tokens.length)} tokens. This model's context holds ${counted(config.context_length)} and moves by a quarter of that at a time: it reads the last ${counted(tokens.length - begin)}.`);
  }
  if (!written.length && state.get("written")) notices.push("The link's text was left out: it has tokens that this model doesn't know.");
  const layers = attentions[kindOf(attentions, state.get("attention"))]?.modules.length ?? 0;
  for (const [name, count] of Object.entries({ layer: layers, head: config.n_heads })) {
    if (layers && state.number(name) >= count) notices.push(`There is no ${name} ${state.number(name)} here; the last one, ${count - 1}, is shown.`);
  }
  const step = state.number("step");
  if (step !== null && !(step > 0 && step < tokens.length + written.length)) notices.push(`The text has no predicted token at position ${step}; the last one is shown.`);
  return notices;
}

/** The attention to show: the one that is wished, if the model has it; else its last. @param {AboutModel["attentions"]} attentions @param {string | null} wish @param {string[]} [among] */
export function kindOf(attentions, wish, among = ["self", "encoder", "decoder", "cross"]) {
  const kinds = Object.keys(attentions).filter((kind) => among.includes(kind));
  return kinds.includes(wish) ? wish : (kinds.at(-1) ?? null);
}

const counted = (number) => number.toLocaleString("en");

// What the page What if compares, from the model, the page state and the text.

import { ApiError } from "../api_error.js";
import { windowStart } from "../generation/view_params.js";
import { inWords } from "../intervention_codes.js";
import { namedAfter, readPrompt } from "../page/text_reading.js";
/** @import { Parameters } from "../api.js" */
/** @import { Model } from "../page/answers.js" */
/** @import { StateReader } from "../page/page_state.js" */
/** @import { ListedModel } from "../page/shell.js" */
/** @import { PageText } from "../page/text_reading.js" */
/** @import { Choice, ViewInput } from "../page/view_data.js" */

/**
 * A text as one model reads it.
 *
 * @typedef {object} Side
 * @property {string} model its name
 * @property {string} title
 * @property {number[]} tokens what fits the context; of an encoder–decoder what its decoder reads
 * @property {number[]} source
 * @property {number} begin the first token's position in the whole text
 * @property {number} position of the token, among `tokens`, after which the next one is looked at; of an encoder, of the predicted one
 * @property {string | null} changes of the model
 *
 * @typedef {(model: Model, text: PageText) => Promise<{ tokens: number[], ids: number[] }>} Answering a text with what an encoder–decoder would write
 *
 * @typedef {object} Around what a page knows beside its model
 * @property {(name: string) => Promise<Model>} open
 * @property {ListedModel[]} catalogue
 * @property {Answering} wholeOf
 */

const QUESTIONS = { ablation: "Ablation", patching: "Activation patching", comparison: "Comparison", ladder: "The ladder" };
const COMPARED = { prompts: "Two prompts", models: "Two models", changes: "With and without changes" };
const SCOPES = { prompt: "The prompt", all: "Prompt and generated text" };
const LADDERS = { first: ["Ladder", "From a bigram to a transformer"], "since-2017": ["Since 2017", "Since 2017"] };
const MOST_READ = 3; // models that are tried whether they can read a prompt

/** @param {Model} model @param {StateReader} state @param {PageText} text @param {Around} around @returns {Promise<ViewInput>} */
export async function whatIfData(model, state, text, around) {
  const question = oneOf(QUESTIONS, state.get("question"));
  const asked = { model, state, text, ...around };
  const ladders = Object.keys(LADDERS).filter((which) => rungsOf(which, around.catalogue).length);
  const offered = Object.entries(QUESTIONS).filter(([name]) => name !== "ladder" || ladders.length || question === name);
  const { about, choices = [], models } = await { ablation, patching, comparison, ladder }[question](asked);
  const sampling = { temperature: Number(state.get("temperature") ?? 0.8), top_k: Number(state.get("top_k")) || null, top_p: Number(state.get("top_p")) || null, seed: Number(state.get("seed") ?? 1) };
  return {
    request: { tokens: text.tokens.join(), source: text.source.join() || null, changes: text.changes },
    about: {
      question, model: model.name, version: model.version, prompt: text.prompt, file: (model.fileName ?? model.name).replaceAll(/[/\s]+/g, "-"), sampling,
      isCausal: isCausal(model), interventions: (text.changes ?? "").split("!").filter(Boolean).map((code) => ({ code, words: inWords(code) })), ...about,
    },
    choices: [choiceOf("question", "Question", question, offered, ["token", "own_token", "other_token"]), ...choices],
    models, saysChanges: question === "ablation" || question === "patching", // below their pictures, which stay where they are
  };
}

/** @param {string} name @param {string} label @param {string} value @param {[string, string][]} options @param {string[]} [resets] @returns {Choice} */
const choiceOf = (name, label, value, options, resets = []) => ({ name, label, value, options, resets });

/** What a link asks for, or the first there is. @param {Record<string, any>} options @param {string | null} wish */
const oneOf = (options, wish) => (wish !== null && Object.hasOwn(options, wish) ? wish : Object.keys(options)[0]);

const isCausal = ({ about: { config } }) => config.architecture !== "encoder-only";

/** Of an encoder its first mask, else the last token. @param {Model} model @param {number[]} tokens */
function predictedPosition(model, tokens) {
  const mask = isCausal(model) ? -1 : tokens.indexOf(model.about.card.mask_token_id);
  return mask >= 0 ? mask : tokens.length - 1;
}

/** A text that may be longer than the context. @param {Model} model @param {string} title @param {number[]} text @param {string | null} changes @returns {Side} */
function windowed(model, title, text, changes) {
  const begin = windowStart(text.length, model.about.config.context_length);
  const tokens = text.slice(begin);
  return { model: model.name, title, tokens, source: [], begin, position: predictedPosition(model, tokens), changes };
}

/** The text that is asked about: the prompt, or all there is; of an encoder–decoder what is written, or what it would write. */
async function ablation({ model, state, text, wholeOf, catalogue }) {
  const { about: { card, config } } = model;
  const parts = partsOf(model, catalogue);
  if (!text.source.length) {
    const isAll = text.written.length && state.get("scope") === "all";
    const tokens = isAll ? [...text.tokens, ...text.written] : text.tokens;
    const side = windowed(model, "", tokens, text.changes);
    const choices = text.written.length ? [choiceOf("scope", "Text", isAll ? "all" : "prompt", Object.entries(SCOPES))] : [];
    return { about: { side, before: tokens, ...parts, whose: null, room: null, mask: card.mask_token_id, text: { start: text.read.chat ?? text.prompt, more: tokens.slice(text.tokens.length) } }, choices };
  }
  const whole = (await wholeOf(model, { ...text, changes: null })).ids.slice(0, config.context_length);
  const positions = whole.length - (whole.length > 1 && card.stop_tokens.includes(whole.at(-1)) ? 1 : 0);
  const position = Math.min(Number(state.get("place") ?? 0) || 0, positions - 1);
  const before = whole.slice(0, position + 1);
  return {
    about: {
      side: { model: model.name, title: "", tokens: whole, source: text.source, begin: 0, position, changes: text.changes }, before, ...parts,
      whose: text.written.length ? "was written" : "the unchanged model would write", room: config.context_length - before.length, mask: null,
      text: { start: "", more: before.slice(text.tokens.length) },
    },
    choices: positions > 1 ? [choiceOf("place", "What comes after", String(position), Array.from({ length: positions }, (_, at) => [String(at), `After ${at} · ${model.about.kinds?.[whole[at]]?.[0] ?? `#${whole[at]}`}`]))] : [],
  };
}

/** Two prompts of one length, and the tokens that are compared: of an encoder–decoder, where its answers to them part. */
async function patching({ model, state, text, wholeOf, catalogue }) {
  const other = await otherOf(model, state, text);
  const about = { other, sides: /** @type {Side[] | null} */ (null), stacks: text.source.length ? ["encoder", "decoder"] : ["self"], patched: Boolean(text.changes?.split("!").some((code) => code.startsWith("from~"))), ...partsOf(model, catalogue) };
  if (other.problem || !about.hasParts) return { about };
  const [own, others] = text.source.length ? [text.source, other.read.source] : [text.tokens, other.read.tokens];
  other.problem = misfit(model, own, others);
  if (other.problem) return { about };
  const kept = (text.changes ?? "").split("!").filter((code) => code && !code.startsWith("from~")).join("!") || null;
  let [one, two] = [own, others];
  if (text.source.length) {
    const answers = [];
    for (const read of [text, other.read]) answers.push((await wholeOf(model, { ...read, written: [], changes: null })).ids);
    one = two = answers[0].slice(0, partingOf(answers));
  }
  about.sides = [[one, text.source], [two, other.read.source]].map(([tokens, source], at) => ({
    model: model.name, title: ["Your prompt", "The other prompt"][at], tokens, source, begin: 0, position: isCausal(model) ? one.length - 1 : predictedPosition(model, one), changes: kept,
  }));
  return { about, models: [namedAfter(model, other.read.read)] };
}

/** Where two answers part; behind the first token where they don't. @param {number[][]} both */
function partingOf([one, two]) {
  const at = one.findIndex((id, place) => place < two.length && id !== two[place]);
  return at > 0 ? at : 1;
}

/** Why two prompts can't be patched into one another, and what to do; null if they can. @param {Model} model @param {number[]} own @param {number[]} other */
function misfit(model, own, other) {
  const longest = model.about.config.context_length;
  const counted = (count) => `${count} ${count === 1 ? "token" : "tokens"}`;
  const lengths = `Your prompt has ${counted(own.length)}, the other one ${other.length}`;
  if (Math.max(own.length, other.length) > longest) return `${lengths}, and this model's context holds ${longest}. Shorten them until they fit.`;
  if (own.length !== other.length) {
    const more = own.length - other.length;
    return `${lengths}. Patching needs equal lengths. ${more > 0 ? `Add ${more} to` : `Take ${-more} away from`} the other prompt, or let one be suggested.`;
  }
  if (own.join() === other.join()) return "Both prompts are the same. Change a word or a letter of the other one.";
  const isElsewhere = !isCausal(model) && predictedPosition(model, own) !== predictedPosition(model, other);
  return isElsewhere ? "The first masks of the prompts are at different positions. Let both have it at the same one." : null;
}

/**
 * Another prompt: the one that is chosen, or one that is suggested.
 *
 * @param {Model} model
 * @param {StateReader} state
 * @param {PageText} text
 * @returns {Promise<{ text: string, suggested: string | null, pairs: { prompts: [string, string], continues: boolean }[], read: any, problem: string | null }>}
 */
async function otherOf(model, state, text) {
  const { suggested, pairs } = await suggestionsFor(model, text.prompt);
  const other = state.get("other_prompt") ?? suggested ?? text.prompt;
  return { text: other, suggested, pairs: pairs.filter(({ prompts: [own] }) => own !== text.prompt), ...(await readAs(model, other, "The other prompt", state)) };
}

/** What the server suggests; where there is none, another of the model's examples. @param {Model} model @param {string} prompt */
async function suggestionsFor(model, prompt) {
  const api = model.apiOf({}, { computed: () => {}, onServer: true });
  return api.json("prompt-pairs", { text: prompt }).catch((error) => {
    if (!(error instanceof ApiError)) throw error;
    return { suggested: model.card.examples.find((example) => example !== prompt) ?? null, pairs: [] };
  });
}

/** A text as a model reads it, or why it can't. @param {Model} model @param {string} text @param {string} what the text is called @param {StateReader} state */
async function readAs(model, text, what, state) {
  if (!text) return { read: null, problem: `${what} is empty. Type something.` };
  try {
    return { read: { ...(await readPrompt(model, text, state.get("reads") ?? undefined)), written: [], changes: null }, problem: null };
  } catch (error) {
    if (!(error instanceof ApiError) || !error.isFinal) throw error;
    return { read: null, problem: `${what}: ${error.message}` };
  }
}

async function comparison(asked) {
  const { model, state, text } = asked;
  const mode = oneOf(COMPARED, state.get("beside"));
  const choices = [choiceOf("beside", "Compare", mode, Object.entries(COMPARED))];
  const found = await { prompts: twoPrompts, models: twoModels, changes: withAndWithout }[mode](asked);
  const { model: of, text: own } = { model, text };
  return { ...found, about: { mode, other: null, sides: null, notes: [], ...found.about, ownModel: of.name, changed: Boolean(own.changes) }, choices: [...choices, ...(found.choices ?? [])] };
}

async function twoPrompts(asked) {
  const { model, state, text } = asked;
  const other = await otherOf(model, state, text);
  if (other.problem) return { about: { other, sides: null } };
  const sides = await sidesOf(asked, ["Your prompt", "The other prompt"], [text, { ...other.read, changes: text.changes }]);
  return { about: { other, sides }, models: [namedAfter(model, other.read.read)] };
}

async function withAndWithout(asked) {
  const { text } = asked;
  return { about: { sides: text.changes ? await sidesOf(asked, ["Unchanged", "Changed"], [{ ...text, changes: null }, text]) : null } };
}

/** Two texts, or one, in the model that is selected. Answers of an encoder–decoder are looked at where they part. @param {any} asked @param {string[]} titles @param {PageText[]} texts @returns {Promise<Side[]>} */
async function sidesOf({ model, wholeOf }, titles, texts) {
  if (!texts[0].source.length) return texts.map(({ tokens, changes }, at) => windowed(model, titles[at], tokens, changes));
  const answers = [];
  for (const text of texts) answers.push((await wholeOf(model, { ...text, written: [] })).tokens);
  const position = partingOf(answers) - 1;
  const isOne = texts[0].prompt === texts[1].prompt;
  return texts.map(({ source, changes }, at) => ({ model: model.name, title: titles[at], tokens: answers[isOne ? 0 : at], source, begin: 0, position, changes }));
}

async function twoModels(asked) {
  const { model, state, text, catalogue, open, wholeOf } = asked;
  const own = catalogue.find(({ name }) => name === model.name) ?? { name: model.name, title: model.card.title };
  const able = catalogue.filter((each) => each.name !== model.name && each.causal === isCausal(model)).sort(inOrderOf((each) => [each.corpus !== own.corpus, each.language !== own.language, each.group !== own.group, -each.parameters, each.name]));
  if (!able.length) return { about: { notes: [`There is no other ${isCausal(model) ? "model" : "encoder"} here.`] } };
  const wish = state.get("other_model");
  const notes = wish !== null && !able.some(({ name }) => name === wish) ? [`There is no model “${wish.slice(0, 40)}” to compare with; another is shown.`] : [];
  const chosen = able.find(({ name }) => name === wish);
  let other, read, problem;
  for (const each of chosen ? [chosen] : able.slice(0, MOST_READ)) {
    const found = await open(each.name);
    const reading = await readAs(found, inNamesOf(found, model, text.prompt), `To ${each.title}, your prompt`, state);
    if (!other || !reading.problem) [other, read, problem] = [namedAfter(found, reading.read?.read), reading.read, reading.problem];
    if (!reading.problem) break;
  }
  const listed = able.find(({ name }) => name === other.name);
  const choices = [choiceOf("other_model", "Other model", other.name, able.map(({ name, title }) => [name, title]))];
  if (problem) return { about: { notes: [...notes, problem] }, choices, models: [other] };
  if (listed.corpus !== own.corpus) notes.push("The other model was trained on other data. It may never have seen a text like this prompt.");
  if (text.changes) notes.push("The changes apply to the selected model only.");
  const isSame = own.title === listed.title; // a visitor's own may be called the same
  const titles = [own.title, listed.title].map((title, at) => (isSame ? `${title} (${at + 1})` : title));
  const sides = [];
  for (const [at, [each, its]] of [[model, text], [other, read]].entries()) {
    if (!its.source.length) sides.push(windowed(each, titles[at], its.tokens, its.changes));
    else sides.push({ model: each.name, title: titles[at], tokens: (await wholeOf(each, { ...its, written: [] })).tokens, source: its.source, begin: 0, position: 0, changes: its.changes });
  }
  return { about: { sides, notes }, choices, models: [other] };
}

/** Each encoder has its own name for masks. @param {Model} other @param {Model} model @param {string} prompt */
function inNamesOf(other, model, prompt) {
  const [mine, its] = [model, other].map(({ about: { kinds, card } }) => kinds?.[card.mask_token_id]?.[0]);
  return mine && its ? prompt.replaceAll(mine, its) : prompt;
}

/** Compares by the first of several keys that differs. @template Each @param {(each: Each) => any[]} keysOf @returns {(one: Each, other: Each) => number} */
const inOrderOf = (keysOf) => (one, other) => {
  const [these, those] = [keysOf(one), keysOf(other)];
  const at = these.findIndex((key, place) => key !== those[place]);
  return at < 0 ? 0 : these[at] < those[at] ? -1 : 1;
};

/** Whether a model has layers; of one without, able: one with attention to go on to. @param {Model} model @param {ListedModel[]} catalogue */
function partsOf(model, catalogue) {
  const hasParts = Object.keys(model.about.attentions).length > 0;
  const own = catalogue.find(({ name }) => name === model.name);
  const [able] = catalogue.filter(({ attends }) => attends).sort(inOrderOf((each) => [each.group !== own?.group, each.name]));
  return { hasParts, able: hasParts || !able ? null : { name: able.name, title: able.title } };
}

/** The models of a ladder, from the lowest rung. @param {string} which @param {ListedModel[]} catalogue */
const rungsOf = (which, catalogue) => catalogue.filter(({ group }) => group === LADDERS[which][0]).sort(inOrderOf(({ name }) => [name]));

async function ladder({ model, state, text, catalogue, open }) {
  const there = Object.keys(LADDERS).filter((which) => rungsOf(which, catalogue).length);
  if (!there.length) return { about: { problem: "There is no ladder here: its models are missing.", rungs: [] } };
  const which = there.includes(state.get("ladder")) ? state.get("ladder") : there[0];
  const rungs = rungsOf(which, catalogue);
  const choices = there.length > 1 ? [choiceOf("ladder", "Ladder", which, there.map((each) => [each, LADDERS[each][1]]))] : [];
  const last = { name: rungs.at(-1).name, title: rungs.at(-1).title };
  if (!isCausal(model)) return { about: { problem: "The models of a ladder write a text on; this one fills what is masked in it. Choose one of them.", rungs: [], last }, choices };
  const models = await Promise.all(rungs.map(({ name }) => open(name)));
  const { read, problem } = await readAs(models[0], text.prompt, "On the ladder, your prompt", state);
  const corpus = models[0].card.corpus?.name === model.card.corpus?.name || rungs.some(({ name }) => name === model.name) ? null : (models[0].card.corpus?.title ?? "a different one");
  return { about: { which, problem, last, rungs: rungs.map(({ name, attends }) => ({ name, attends })), tokens: read?.tokens ?? [], corpus, changed: Boolean(text.changes) }, choices, models: models.map((each) => namedAfter(each, read?.read)) };
}

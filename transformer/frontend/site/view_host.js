// Shows an instrument for what an address says, computed in this browser: model, prompt, text, and what is looked at.

import { ApiError } from "../api_error.js";
import { UnknownTokenError } from "../engine/tokenizer.js";
import { onPage } from "../on_page.js";
import { apiOf } from "./models.js";
import { attentionData, fillingData, generationData, insideData, masksData, positionsData, whatIfData } from "./page_data.js";
/** @import { Models, OpenedModel } from "./models.js" */
/** @import { TypedText } from "./page_data.js" */

/** @typedef {Record<string, new (root: HTMLElement, host: any) => any>} Views of instruments, by page; of Generate, Filling is the one for an encoder */

const LONGEST_ANSWER = 200; // tokens of what an encoder–decoder would write
const OFF = "-"; // before a change that is turned off

export const DEFAULT_MODEL = "shakespeare"; // of an address that names none

/**
 * Show a page's instrument in an element. Rejects with an ApiError that says why it can't be.
 *
 * @param {HTMLElement} parent has an element with data-part="root"
 * @param {string} page
 * @param {URLSearchParams} parameters of the address
 * @param {Models} models
 * @param {Views} views
 * @param {(event: string, value: any) => void} tell what the instrument asks of its page: "navigate", "change"
 * @returns {Promise<OpenedModel | null>} null for a view without a model
 */
export async function showView(parent, page, parameters, models, views, tell) {
  if (page === "Positions") {
    draw(parent, page, views, positionsData(parameters), tell, null);
    return null;
  }
  const model = await models.open(parameters.get("model") ?? DEFAULT_MODEL);
  const text = typed(model, parameters);
  const attention = parameters.get("attention");
  const isEncoder = model.about.card.mask_token_id !== null;
  /** @type {Record<string, any> | null} */
  let data = null;
  if (page === "Generate") data = isEncoder ? fillingData(model, text) : generationData(model, text, attention);
  else if (page === "Masks") data = masksData(model, text);
  else if (page === "What if") data = whatIfData(model, text, parameters.get("question") === "comparison" ? typed(model, parameters, "other_prompt") : null, parameters);
  if (!data) {
    const answer = text.source.length && !text.written.length ? await answerOf(model, text) : text.written;
    const ends = new Set(model.about.card.stop_tokens);
    const whole = { ...text, written: text.source.length && ends.has(answer.at(-1)) ? answer.slice(0, -1) : answer };
    const following = model.tokenizer.labels([...text.tokens, ...answer].slice(1));
    data = page === "Inside" ? insideData(model, whole) : attentionData(model, whole, attention, following);
  }
  if (!data) throw new ApiError("This model has no attention: no token looks at another.");
  const kind = page === "Generate" && isEncoder ? "Filling" : page;
  draw(parent, kind, views, data, tell, model);
  return model;
}

/** @type {{ parent: HTMLElement, show: () => void } | null} */ let shown = null;

/** Draw what was shown last once more, if it is there still. */
export function redraw() {
  if (shown?.parent.isConnected) shown.show();
}

/** @param {HTMLElement} parent @param {string} kind @param {Views} views @param {Record<string, any>} data @param {(event: string, value: any) => void} tell @param {OpenedModel | null} model */
function draw(parent, kind, views, data, tell, model) {
  if (parent.dataset.kind !== kind) {
    parent.dataset.kind = kind;
    const root = document.createElement("div");
    root.dataset.part = "root";
    parent.replaceChildren(root);
  }
  const View = views[kind];
  const show = () => onPage({ data: /** @type {any} */ ({ token: null, ...data }), parentElement: parent, setTriggerValue: tell, apiOf: (request) => (model ? apiOf(model, request) : { end() {} }) }, (root, host) => /** @type {any} */ (new View(root, host)));
  shown = { parent, show };
  show();
}

/** What an address says of the text. @param {OpenedModel} model @param {URLSearchParams} parameters @param {string} name @returns {TypedText} */
function typed({ about: { config, card }, card: { examples }, tokenizer }, parameters, name = "prompt") {
  const prompt = parameters.get(name) ?? examples[0] ?? "";
  let tokens;
  try {
    tokens = tokenizer.encode(prompt);
  } catch (error) {
    if (error instanceof UnknownTokenError) throw new ApiError(`${error.message} Remove what is unknown, or pick another model.`);
    throw error;
  }
  if (!tokens.length) throw new ApiError("The prompt is empty. Type a text or pick an example.");
  const isTranslator = config.architecture === "encoder-decoder";
  const over = tokens.length - config.context_length;
  if (over > 0 && (isTranslator || card.mask_token_id !== null)) {
    throw new ApiError(`The ${isTranslator ? "source" : "prompt"} has ${tokens.length} tokens, and this model reads at most ${config.context_length}. Take ${over} away.`);
  }
  const ids = (parameters.get("written") ?? "").split(".").filter((id) => /^\d{1,7}$/.test(id)).map(Number);
  const changes = (parameters.get("changes") ?? "").split("!").filter((code) => code && !code.startsWith(OFF)).join("!");
  return {
    prompt,
    tokens: isTranslator ? card.start_tokens : tokens,
    source: isTranslator ? tokens : [],
    written: ids.filter((id) => id < config.vocab_size),
    changes: changes || null,
  };
}

/** What an encoder–decoder would write. @param {OpenedModel} model @param {TypedText} text @returns {Promise<number[]>} */
async function answerOf(model, { tokens, source, changes }) {
  const most = Math.min(LONGEST_ANSWER, model.about.config.context_length - tokens.length);
  const api = apiOf(model, { tokens: tokens.join(), source: source.join(), changes });
  const answer = [];
  for await (const { data } of api.stream("generate", { temperature: 0, max_new_tokens: most })) {
    if (data.id !== undefined) answer.push(data.id);
  }
  return answer;
}

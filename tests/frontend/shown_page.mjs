// What the shell shows of a page, without its DOM: what its view is told, and the sentences around it.
import { ApiError } from "../../transformer/frontend/api_error.js";
import { HttpAnswers } from "../../transformer/frontend/page/answers.js";
import { effectOf } from "../../transformer/frontend/page/changed_model.js";
import { DEFAULT_MODEL } from "../../transformer/frontend/page/page_state.js";
import { namedAfter, noticesOf, sentenceIn, textOf } from "../../transformer/frontend/page/text_reading.js";
import { viewData } from "../../transformer/frontend/page/view_data.js";
/** @import { PageState } from "../../transformer/frontend/page/page_state.js" */

/**
 * @param {string} page
 * @param {PageState} state
 * @param {string[]} own keys of the visitor's models
 * @param {boolean} isDrawn whether the frontend draws the page
 * @param {import("../../transformer/frontend/page/shell.js").ListedModel[]} catalogue
 */
export async function shownPage(page, state, own, isDrawn, catalogue) {
  try {
    const answers = new HttpAnswers({ isOwn: (name) => own.includes(name) });
    const opened = await answers.open(state.get("model") ?? DEFAULT_MODEL);
    const text = await textOf(opened, state);
    const model = namedAfter(opened, text.read);
    const effect = text.changes ? await effectOf(model, text) : null;
    const data = isDrawn ? await viewData(page, state, model, effect?.overflows ? { ...text, changes: null } : text, { open: (name) => answers.open(name), catalogue }) : null;
    const { isOwn, name, version } = model;
    const request = { model: isOwn ? "own" : name, version: isOwn ? null : version, ...(model.newWords ? { new_words: model.newWords } : {}), ...data?.request };
    const notices = [...(effect?.overflows ? [effect.sentence] : []), ...noticesOf(model, state, text).map(sentenceIn), ...(data?.notes ?? [])];
    const { models, ...rest } = data ?? {}; // which the view asks by itself
    return { ...rest, request, effect: effect?.sentence ?? null, notices, problem: "" };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { about: null, effect: null, notices: [], problem: error.message };
  }
}

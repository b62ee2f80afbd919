// A saved page, or a notebook's frame: the shell, with the model that lies in the page.

import { embedded } from "../embedded_recordings.js";
import { deviationInWords, deviationOf } from "../engine_deviation.js";
import { pageState } from "../page/page_state.js";
import { Shell } from "../page/shell.js";
import { redrawWithPage } from "../printing.js";
import { Models, embeddedModel } from "../site/models.js";
/** @import { Model } from "../page/answers.js" */
/** @import { ReadText } from "../page/text_reading.js" */
/** @import { Views } from "../page/view_slot.js" */

/**
 * @typedef {object} SavedPage
 * @property {{ title: string, sentence: string }} page
 * @property {string} link the page state that was saved
 * @property {string} fileName what files that are saved from the page are called
 * @property {{ prompt: string, read: ReadText }} text the prompt, and its tokens as they were given
 * @property {{ name: string, title: string, group: string, examples: string[] }[]} models the one
 */

/** @param {Views} views those of the page */
export function startSavedPage(views) {
  /** @type {SavedPage} */
  const { page, link, fileName, text, models: catalogue } = JSON.parse(document.getElementById("page").textContent);
  const models = new Models(embeddedModel);
  /** @type {Promise<Model> | null} */
  let opening = null;
  const open = async (name) => {
    const model = await models.open(name);
    const compared = comparison(model);
    return {
      ...model, fileName,
      read: (typed, reads, newWords) => (typed === text.prompt ? text.read : model.read(typed, reads, newWords)),
      apiOf: (request, options) => {
        compared.then((words) => options.computed(`Computed in your browser. ${words}`), () => {});
        return model.apiOf(request, options);
      },
    };
  };
  pageState().become(link);
  const main = document.querySelector("main");
  main.replaceChildren();
  const shell = new Shell(main, { page, views, catalogue, answers: { open: (name) => (opening ??= open(name)) }, navigate: null, isLinked: false });
  redrawWithPage(() => shell.redraw());
}

/** How far this browser's numbers are from the engine's, on a sample that the page holds. @param {Model} model */
async function comparison(model) {
  const sample = embedded("sample");
  const { tokens, source } = sample.metadata;
  const api = model.apiOf({ tokens: tokens.join(), source: source.join() || null }, { computed: () => {} });
  return deviationInWords(deviationOf(await api.recording("tensors", { names: Object.keys(sample.tensors) }), sample), tokens.length + source.length);
}

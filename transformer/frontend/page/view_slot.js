// Where a page has its view: the instrument, below what is chosen and said beside it.

import { attribute, list, node, put } from "../dom.js";
import { DEFAULT_MODEL, PageState, pageState } from "./page_state.js";
import { textOf } from "./text_reading.js";
import { needsModel, viewData } from "./view_data.js";
import { ViewFrame } from "./view_frame.js";
/** @import { Answers, Model } from "./answers.js" */
/** @import { Choice, ViewData } from "./view_data.js" */
/** @import { ApiOf, Tell, ViewClass } from "./view_frame.js" */

/** @typedef {Record<string, ViewClass>} Views by page; of Generate, Filling is the one for a model that reads in both directions */

export class ViewSlot {
  /** @type {ViewFrame | null} */ frame = null;
  /** @type {ViewData} */ shown;

  /**
   * @param {HTMLElement} parent
   * @param {Views} views
   * @param {Tell} tell
   * @param {{ heading?: HTMLElement, navigates?: boolean }} [options] heading: where choices go; navigates: whether there are other pages
   */
  constructor(parent, views, tell, { heading = parent, navigates = true } = {}) {
    this.navigates = navigates;
    this.parent = parent;
    this.views = views;
    this.tell = tell;
    this.choices = node("div", "view-choices", heading);
    this.notes = node("div", "view-notes", parent);
  }

  /** @param {ViewData} data @param {ApiOf} apiOf */
  draw(data, apiOf) {
    const View = this.views[data.view];
    if (this.shown?.view !== data.view) {
      this.frame?.root.remove();
      const root = node("div", "", this.parent);
      root.dataset.part = "root";
      this.frame = new ViewFrame(root, (parent, host) => new View(parent, host), (event, value) => this.tell(event, value), { navigates: this.navigates });
    }
    this.shown = data;
    this.apiOf = apiOf;
    this.offer(data.choices ?? []);
    list(this.notes, data.notes ?? [], (sentence) => {
      const note = node("p", "view-note", null);
      put(note, sentence);
      return note;
    });
    this.frame.show(data.request, data.about, apiOf);
  }

  /** Draw the same once more, in the page's present size and colours. */
  redraw() {
    if (this.frame?.root.isConnected) this.frame.show(this.shown.request, this.shown.about, this.apiOf);
  }

  /** @param {Choice[]} choices */
  offer(choices) {
    list(this.choices, choices, ({ name, label, value, options, resets }) => {
      const select = node("select", "", null);
      attribute(select, "aria-label", label);
      select.replaceChildren(...options.map(([option, words]) => new Option(words, option, false, option === value)));
      select.addEventListener("change", () => pageState().set({ ...Object.fromEntries(resets.map((other) => [other, null])), [name]: select.value }));
      return select;
    });
    this.choices.hidden = !choices.length;
  }
}

/** @type {WeakMap<HTMLElement, ViewSlot>} */
const slots = new WeakMap();
/** @type {ViewSlot | null} */
let latest = null;

/**
 * Show a page's view for a link, in an element. Rejects with an ApiError that says why it can't be.
 *
 * @param {HTMLElement} parent
 * @param {string} page
 * @param {URLSearchParams} parameters of the link
 * @param {Answers} answers
 * @param {Views} views
 * @param {Tell} tell
 * @returns {Promise<Model | null>} null for a view without a model
 */
export async function showView(parent, page, parameters, answers, views, tell) {
  const state = new PageState(parameters);
  state.arrivals = pageState().arrivals;
  const model = needsModel(page) ? await answers.open(state.get("model") ?? DEFAULT_MODEL) : null;
  const text = model && (await textOf(model, state));
  const data = await viewData(page, state, model, text);
  if (!slots.has(parent)) {
    parent.replaceChildren();
    slots.set(parent, new ViewSlot(parent, views, tell));
  }
  latest = slots.get(parent);
  latest.tell = tell;
  latest.draw(data, apiOf(model));
  return model;
}

/** Draw once more what `showView` has shown last. */
export function redraw() {
  latest?.redraw();
}

/** What answers a view's requests; one without a model makes none. @param {Model | null} model @returns {ApiOf} */
export const apiOf = (model) => (request, options) => (model ? model.apiOf(request, options) : /** @type {any} */ ({ end() {} }));

// Where a page has its view: the instrument, below what is chosen and said beside it.

import { attribute, list, node, put } from "../dom.js";
import { DEFAULT_MODEL, NotingReader, PageState, pageState } from "./page_state.js";
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
  /** @type {(() => void) | undefined} */ unfollow; // of the tab's page state
  turn = {}; // of what is being shown

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
 * Show a page's view for a link, in an element, and anew whenever the tab's page state has something else of what the view is computed
 * from. Rejects with an ApiError that says why it can't be shown.
 *
 * @param {HTMLElement} parent
 * @param {string} page
 * @param {URLSearchParams} parameters of the link, which the tab's page state holds
 * @param {Answers} answers
 * @param {Views} views
 * @param {Tell} tell
 * @returns {Promise<Model | null>} null for a view without a model
 */
export async function showView(parent, page, parameters, answers, views, tell) {
  if (!slots.has(parent)) {
    parent.replaceChildren();
    slots.set(parent, new ViewSlot(parent, views, tell));
  }
  const slot = (latest = slots.get(parent));
  const turn = (slot.turn = {});
  slot.tell = tell;
  slot.unfollow?.();
  const state = new PageState(parameters);
  state.arrivals = pageState().arrivals;
  const reader = new NotingReader(state, page);
  const model = needsModel(page) ? await answers.open(reader.get("model") ?? DEFAULT_MODEL) : null;
  const text = model && (await textOf(model, reader));
  const data = await viewData(page, reader, model, text);
  if (turn !== slot.turn) return model;
  slot.draw(data, apiOf(model));
  const unfollow = pageState().follow(() => {
    if (!parent.isConnected || state.arrivals !== pageState().arrivals) unfollow(); // whoever had it become another state shows that
    else if (reader.isOutdated(pageState())) showView(parent, page, new URLSearchParams(pageState().all()), answers, views, tell).catch((error) => slot.frame.fail(error));
  });
  slot.unfollow = unfollow;
  return model;
}

/** Draw once more what `showView` has shown last. */
export function redraw() {
  latest?.redraw();
}

/** What answers a view's requests; one without a model makes none. @param {Model | null} model @returns {ApiOf} */
export const apiOf = (model) => (request, options) => (model ? model.apiOf(request, options) : /** @type {any} */ ({ end() {} }));

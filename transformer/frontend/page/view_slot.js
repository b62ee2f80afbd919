// Where a page has its view: the instrument, below what is chosen and said beside it.

import { attribute, list, node, put } from "../dom.js";
import { pageState } from "./page_state.js";
import { ViewFrame } from "./view_frame.js";
/** @import { Model } from "./answers.js" */
/** @import { Choice, ViewData } from "./view_data.js" */
/** @import { ApiOf, Notify, ViewClass } from "./view_frame.js" */

/** @typedef {Record<string, ViewClass>} Views by page; of Generate, Filling is the one for a model that reads in both directions */

export class ViewSlot {
  /** @type {ViewFrame | null} */ frame = null;
  /** @type {ViewData} */ shown;

  /**
   * @param {HTMLElement} parent
   * @param {Views} views
   * @param {Notify} notify
   * @param {{ heading: HTMLElement, navigates: boolean }} options heading: where choices go; navigates: whether there are other pages
   */
  constructor(parent, views, notify, { heading, navigates }) {
    this.navigates = navigates;
    this.parent = parent;
    this.views = views;
    this.notify = notify;
    this.choices = node("div", "view-choices", heading);
    this.notes = node("div", "view-notes", parent);
  }

  /** @param {ViewData} data @param {ApiOf} apiOf */
  draw(data, apiOf) {
    const View = this.views[data.view];
    if (this.shown?.view !== data.view) {
      this.frame?.end();
      const root = node("div", "", this.parent);
      root.dataset.part = "root";
      this.frame = new ViewFrame(root, (parent, host) => new View(parent, host), (event, value) => this.notify(event, value), { navigates: this.navigates });
    }
    this.shown = data;
    this.apiOf = apiOf;
    this.offer(data.choices ?? []);
    list(this.notes, data.notes ?? [], (sentence) => {
      const note = node("p", "view-note", null);
      put(note, sentence);
      return note;
    });
    this.frame.models = data.models;
    this.frame.show(data.request, data.about, apiOf);
  }

  /** Another page takes its place. */
  end() {
    this.choices.remove();
    this.frame?.end();
  }

  /** Draw the same once more, in the page's present size and colours. */
  redraw() {
    if (this.frame?.root.isConnected) this.frame.show(this.shown.request, this.shown.about, this.apiOf);
  }

  /** @param {Choice[]} choices */
  offer(choices) {
    list(this.choices, choices.map(({ value, ...choice }) => choice), ({ name, label, options, resets }) => {
      const select = node("select", "", null);
      attribute(select, "aria-label", label);
      select.replaceChildren(...options.map(([option, words]) => new Option(words, option)));
      select.addEventListener("change", () => pageState().set({ ...Object.fromEntries(resets.map((other) => [other, null])), [name]: select.value }));
      return select;
    });
    choices.forEach(({ value }, at) => (/** @type {HTMLSelectElement} */ (this.choices.children[at]).value = value));
    this.choices.hidden = !choices.length;
  }
}

/** What answers a view's requests; one without a model makes none. @param {Model | null} model @returns {ApiOf} */
export const apiOf = (model) => (request, options) => (model ? model.apiOf(request, options) : /** @type {any} */ ({ end() {} }));

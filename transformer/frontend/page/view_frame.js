// Runs a view in an element of a page: has it drawn for a request, shows what goes wrong above it and who computes below it, and
// shares the page state with it.

import { ApiError, sentenceOf } from "../api_error.js";
import { node, put } from "../dom.js";
import { pageState } from "./page_state.js";
/** @import { Api, Parameters } from "../api.js" */

/**
 * @typedef {object} View what draws an instrument
 * @property {(api: Api, about: Record<string, any>) => Promise<void>} begin resolved once it shows something
 * @property {() => void} setSelection the page state was changed elsewhere
 * @property {() => void} draw the page has another theme, or is printed
 *
 * @typedef {new (root: HTMLElement, host: ViewFrame) => View} ViewClass
 *
 * @typedef {{ computed: (sentence: string) => void, onServer?: boolean }} ApiOptions computed: told who computes what is shown; onServer:
 *   whether the server is to answer, where there is one
 *
 * @typedef {(request: Parameters, options: ApiOptions) => Api} ApiOf what answers a request
 *
 * @typedef {(event: "select" | "change" | "choose" | "navigate", value: any) => void} Notify what a view asks of its page
 */

const AGAIN_MS = 5000; // after which a request that failed for the moment is made again

export class ViewFrame {
  /** @type {ApiOf} */ apiOf;
  /** @type {string} */ shown; // the request, all that is said of it, and the versions of its models, as JSON
  /** @type {Record<string, import("./answers.js").Model>} */ models = {}; // that the view shows, by name
  /** @type {Api} */ api;

  /**
   * @param {HTMLElement} root
   * @param {(root: HTMLElement, host: ViewFrame) => View} make
   * @param {Notify} notify
   * @param {{ navigates?: boolean }} [options] navigates: whether there are other pages
   */
  constructor(root, make, notify, { navigates = true } = {}) {
    this.root = root;
    this.notify = notify;
    this.navigates = navigates;
    this.problem = node("p", "problem", root);
    this.problem.setAttribute("role", "alert");
    this.problem.hidden = true;
    this.view = make(node("div", "", root), this);
    this.computed = node("p", "computed", root);
    this.listener = () => (this.root.isConnected ? this.view.setSelection() : unfollow());
    const unfollow = pageState().follow(this.listener);
  }

  /**
   * Show a request; the same once more is only drawn again.
   *
   * @param {Parameters} request
   * @param {Record<string, any>} about
   * @param {ApiOf} apiOf
   */
  show(request, about, apiOf) {
    this.apiOf = apiOf;
    const given = JSON.stringify([request, about, Object.values(this.models).map(({ name, version }) => [name, version])]);
    if (given === this.shown) this.view.draw();
    else this.begin(request, about, given);
  }

  /** Another view takes its place: nothing that it waits for counts any more. */
  end() {
    clearTimeout(this.later);
    this.api?.end();
    this.api = undefined;
    this.root.remove();
  }

  async begin(request, about, given) {
    this.shown = given;
    clearTimeout(this.later);
    this.api?.end();
    const computed = (sentence) => api === this.api && put(this.computed, sentence);
    const api = (this.api = this.apiOf(request, { computed }));
    this.root.dataset.state = "asking";
    computed("");
    try {
      await this.view.begin(api, about);
      if (api !== this.api) return;
      this.showProblem("");
      this.root.dataset.state = "shown";
    } catch (error) {
      if (api !== this.api) return;
      this.fail(error);
      if (error instanceof ApiError && !error.isFinal) this.later = setTimeout(() => this.root.isConnected && this.begin(request, about, given), AGAIN_MS);
    }
  }

  /** Ask something more: what the promise gives goes to `use`, unless something else is shown by then. */
  async fetch(ask, use) {
    const { api } = this;
    try {
      const answer = await ask();
      if (api !== this.api) return;
      this.showProblem("");
      this.root.dataset.state = "shown";
      use(answer);
    } catch (error) {
      if (api === this.api) this.fail(error);
    }
  }

  fail(error) {
    this.root.dataset.state = "failed";
    this.showProblem(sentenceOf(error));
    if (!(error instanceof ApiError)) throw error;
  }

  showProblem(sentence) {
    put(this.problem, sentence);
    this.problem.hidden = !sentence;
  }

  /** The visitor looks at something else here. */
  select(change) {
    if (pageState().set(change, this.listener)) this.notify("select", change);
  }

  /** Have the page change the model. @param {import("../changes.js").Wish} change */
  change(change) {
    pageState().flush();
    this.notify("change", change);
  }

  /** Show another model, or another prompt. @param {{ model?: string, prompt?: string, [name: string]: any }} chosen a model's prompt is its first example if left out */
  choose(chosen) {
    this.notify("choose", chosen);
  }

  /** Leave for another page, with these values of the page state. */
  navigate(page, change, shown = {}) {
    pageState().set(change, this.listener);
    pageState().flush();
    this.notify("navigate", { page, ...shown });
  }
}

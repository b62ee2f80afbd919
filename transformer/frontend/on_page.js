// Runs an instrument on a page of the app: requests what it draws from the engine, shares the selection with the tab's
// other instruments, and tells the page only of changes to the model and of links to other pages.
import { Api } from "./api.js";
import { ApiError, sentenceOf } from "./api_error.js";
import { node, put } from "./dom.js";
import { pageChange } from "./page_change.js";
import { viewState } from "./view_state.js";
/** @import { Parameters } from "./api.js" */

/**
 * What Streamlit calls a component with. asks: the parameters of every question; token: of an own model, or null; follows: whether the
 * page says something of what is looked at, and so is to be run when that is something else; the rest is what the view is told about.
 *
 * @typedef {object} Component
 * @property {{ request: Parameters, token: string | null, sends_selection?: boolean, in_browser?: boolean, [about: string]: any }} data
 * @property {HTMLElement} parentElement
 * @property {(name: string, value: unknown) => void} setTriggerValue
 * @property {(request: Parameters, options: ApiOptions) => Api} [apiOf] what is asked; left out: the server
 *
 * @typedef {{ token: string | null, computed: (sentence: string) => void }} ApiOptions computed: is told who computes what is shown
 */

/**
 * What draws an instrument on a page.
 *
 * @typedef {object} View
 * @property {(api: Api, about: Record<string, any>) => Promise<void>} begin resolved once it shows something
 * @property {() => void} setSelection somebody else looks at something else
 * @property {() => void} draw the page has another theme
 */

const AGAIN_MS = 5000; // after which what couldn't be asked is asked again
const REST_MS = 400; // after which a page that follows is told that something else is looked at
const views = new WeakMap();

/**
 * Show what a page's component is given.
 *
 * @param {Component} component
 * @param {(root: HTMLElement, host: OnPage) => View} make
 */
export function onPage(component, make) {
  const { data, parentElement, setTriggerValue, apiOf = (request, options) => new Api(request, options) } = component;
  const root = parentElement.querySelector("[data-part=root]");
  if (!root) { // the markup may come after the first call
    if (parentElement.isConnected) requestAnimationFrame(() => onPage(component, make));
    return;
  }
  let view = views.get(parentElement);
  if (!view?.root.isConnected) views.set(parentElement, (view = new OnPage(root, make)));
  view.update(data, setTriggerValue, apiOf);
}

class OnPage {
  /** @type {(name: string, value: unknown) => void} */ trigger;
  /** @type {NonNullable<Component["apiOf"]>} */ apiOf;
  /** @type {string} */ now; // the data that are shown
  /** @type {Api} */ api;

  constructor(root, make) {
    this.root = root;
    this.problem = node("p", "problem", root);
    this.problem.setAttribute("role", "alert");
    this.problem.hidden = true;
    this.view = make(node("div", "", root), this);
    this.computed = node("p", "computed", root);
    this.listener = () => (this.root.isConnected ? this.view.setSelection() : unfollow());
    const unfollow = viewState().follow(this.listener);
    pageChange();
  }

  update({ sends_selection: sendsSelection, ...given }, trigger, apiOf) {
    Object.assign(this, { trigger, apiOf });
    this.sendsSelection = sendsSelection;
    const now = JSON.stringify(given);
    if (now === this.now) this.view.draw(); // another theme
    else this.begin(given, now);
  }

  async begin(given, now) {
    const { request, token, ...about } = given;
    this.now = now;
    clearTimeout(this.later);
    this.api?.end();
    const computed = (sentence) => api === this.api && put(this.computed, sentence);
    const api = (this.api = this.apiOf(request, { token, computed }));
    this.root.dataset.state = "asking";
    computed("");
    try {
      await this.view.begin(api, about);
      if (api !== this.api) return;
      this.say("");
      this.root.dataset.state = "shown";
    } catch (error) {
      if (api !== this.api) return;
      this.fail(error);
      if (error instanceof ApiError && !error.isFinal) this.later = setTimeout(() => this.root.isConnected && this.begin(given, now), AGAIN_MS);
    }
  }

  /** Ask something more: what the promise gives goes to `use`, unless something else is shown by then. */
  async fetch(ask, use) {
    const { api } = this;
    try {
      const answer = await ask();
      if (api !== this.api) return;
      this.say("");
      this.root.dataset.state = "shown";
      use(answer);
    } catch (error) {
      if (api === this.api) this.fail(error);
    }
  }

  fail(error) {
    this.root.dataset.state = "failed";
    this.say(sentenceOf(error));
    if (!(error instanceof ApiError)) throw error;
  }

  say(sentence) {
    put(this.problem, sentence);
    this.problem.hidden = !sentence;
  }

  /** The visitor looks at something else here. */
  select(change) {
    if (!viewState().set(change, this.listener) || !this.sendsSelection) return;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      viewState().flush();
      if (this.root.isConnected) this.trigger("select", viewState().all());
    }, REST_MS);
  }

  /** Have the page change the model. */
  change(change) {
    viewState().flush();
    this.trigger("change", change);
  }

  /** Leave for another page, which is to look at something else, and to show what Python knows of: { attention, scope }. */
  navigate(page, change, shown = {}) {
    viewState().set(change, this.listener);
    viewState().flush();
    this.trigger("navigate", { page, ...shown });
  }
}

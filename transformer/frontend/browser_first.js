// Asks a small model in this browser, once the tab has fetched it, and else the server. The first picture is the server's, and
// what the browser can't answer, too.

import { Api } from "./api.js";
import { ApiError } from "./api_error.js";
import { openModel } from "./browser_model.js";

/**
 * @typedef {import("./browser_model.js").BackedApi} BackedApi
 * @typedef {import("./browser_model.js").BrowserModel} BrowserModel
 */

const RESTS_WITHIN_MS = 3000; // a tab that is never idle fetches its model all the same

/**
 * What this tab computes with: one model at a time, and whoever asked the server last.
 *
 * @type {{ key: string, model: BrowserModel | null, asking: BrowserFirstApi | null }}
 */
const tab = { key: "", model: null, asking: null };

export class BrowserFirstApi extends Api {
  /** @type {BackedApi | null} */ local = null;
  /** @type {BrowserModel | null} whose answers these are */ model = null;
  hasAskedServer = false;

  /**
   * @param {import("./api.js").Parameters} about
   * @param {{ token?: string | null, base?: URL, replaced?: (() => void) | null, computed?: (sentence: string) => void }} options as `Api` has
   *   them; computed: is told who computes
   */
  constructor(about, { computed = () => {}, ...options }) {
    super(about, options);
    this.key = JSON.stringify([about.model, about.version, this.token]);
    this.computed = computed;
  }

  end() {
    super.end();
    this.local?.end();
  }

  /** What answers in this browser, if it can. @returns {BackedApi | null} */
  get here() {
    if (tab.key === this.key && tab.model && !this.local) {
      this.model = tab.model;
      this.local = this.model.apiOf(this.about);
    }
    return this.local?.isThere ? this.local : null;
  }

  async recording(path, values) {
    return (await this.inBrowser((local) => local.recording(path, values))) ?? super.recording(path, values);
  }

  async json(path, values) {
    return (await this.inBrowser((local) => local.json(path, values))) ?? super.json(path, values);
  }

  /** @param {(local: BackedApi) => Promise<any>} question */
  async inBrowser(question) {
    const { here } = this;
    if (!here) return null;
    try {
      const found = await question(here);
      this.showWho();
      return found;
    } catch (error) {
      if (error instanceof ApiError) return null;
      throw error;
    }
  }

  /** @type {Api["stream"]} */
  stream(path, values, options) {
    const { here } = this;
    this.showWho();
    return here ? here.stream(path, values, options) : super.stream(path, values, options);
  }

  /** @type {Api["ask"]} */
  async ask(path, values, options) {
    this.hasAskedServer = true;
    const couldBeHere = this.local !== null; // when it was asked: the model may come before the server's answer
    const answer = await super.ask(path, values, options);
    if (couldBeHere) this.computed("Computed in part in your browser, and in part on the server.");
    else fetchModel(this);
    return answer;
  }

  showWho() {
    if (this.here) this.computed(this.model.inWords(!this.hasAskedServer));
  }
}

/**
 * Have this tab compute the model that is asked about, once it is idle. If the model can't be fetched or fails, the server computes.
 *
 * @param {BrowserFirstApi} api
 */
async function fetchModel(api) {
  const { key, about, token } = api;
  tab.asking = api;
  if (tab.key === key) {
    api.showWho(); // it came before the server's answer
    return;
  }
  tab.model?.engine.break(new ApiError("Another model is computed now.")); // who waits for this one is answered by the server
  Object.assign(tab, { key, model: null });
  await idle();
  try {
    if (tab.key !== key) return;
    const model = await openModel(about, token);
    if (tab.key !== key) model.engine.end(); // another model is asked about by now
    else tab.model = model;
    tab.asking.showWho();
  } catch (error) {
    if (tab.key === key && error instanceof ApiError && !error.isFinal) tab.key = ""; // the server is away: later
  }
}

function idle() {
  return new Promise((resolve) => {
    if (globalThis.requestIdleCallback) requestIdleCallback(resolve, { timeout: RESTS_WITHIN_MS });
    else setTimeout(resolve, RESTS_WITHIN_MS); // as in Safari
  });
}

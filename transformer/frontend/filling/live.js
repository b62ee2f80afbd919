// Starts the instrument that fills masks in a saved page that computes.
import { LivePage } from "../live_page.js";
import { FillingInstrument } from "./instrument.js";
import { requestsOf } from "./requests.js";
/** @import { LocalApi } from "../local_api.js" */

class LiveFilling {
  /** @type {string} */ text; // the prompt's ids

  /** @param {HTMLElement} root @param {LivePage} page */
  constructor(root, page) {
    this.page = page;
    this.shown = { api: null, modules: page.about.attentions.self?.modules ?? [] };
    this.instrument = new FillingInstrument(root, {
      ...requestsOf(/** @type {any} */ (this.shown)), select() {}, fail: (error) => (error ? page.fail(error) : page.say("")),
    });
  }

  /** @param {LocalApi} api @param {import("../live_page.js").Reading} reading */
  async begin(api, { tokens }) {
    const { about: { card, config }, model: { chosen } } = this.page;
    const { modules } = this.shown;
    const [keeps, text] = [String(tokens) === this.text, String(tokens)]; // with a change of the model, what was filled in stays
    this.text = text;
    this.shown.api = /** @type {any} */ (api);
    const looked = this.instrument.looked ?? { layer: 0, head: 0, ...chosen };
    const about = { prompt: tokens, mask: card.mask_token_id, separator: config.separator_token_id ?? null, layers: modules.length, heads: modules.length && config.n_heads, frozen: false };
    await this.instrument.begin(about, keeps ? looked : { ...looked, position: null }, { keeps });
  }

  draw() {}
}

/** Show a model that fills masks. */
export function showLiveFilling() {
  return new LivePage((root, page) => new LiveFilling(root, page));
}

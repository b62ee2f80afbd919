// Starts the Generate instrument in a saved page that computes.
import { LivePage } from "../live_page.js";
import { ViewState } from "../view_state.js";
import { Tree } from "./branch_tree.js";
import { GenerationInstrument } from "./instrument.js";
import { selectionFrom } from "./view_params.js";
/** @import { LocalApi } from "../local_api.js" */

const PACES = [["slow", "2 tokens a second"], ["steady", "8 tokens a second"], ["fast", "25 tokens a second"], ["unbounded", "as fast as it can"]];
const LOOKS_AT = { cross: "at the source", decoder: "at its own words" }; // the attentions of an encoder–decoder that choose the next token

class LiveGeneration {
  /** @param {HTMLElement} root @param {LivePage} page */
  constructor(root, page) {
    this.page = page;
    this.instrument = new GenerationInstrument(root, {
      settingsChanged() {}, select() {}, textChanged() {}, settled() {}, problem: (sentence) => page.say(sentence),
    });
  }

  /** @param {LocalApi} api @param {import("../live_page.js").Reading} reading */
  async begin(api, { tokens, source }) {
    const { about: { attentions, card, config }, model: { title } } = this.page;
    const attention = ["self", "cross", "decoder"].find((kind) => attentions[kind]) ?? null;
    const about = {
      prompt: tokens, source, vocabulary: config.vocab_size, context: config.context_length, ends: card.stop_tokens, arrow: " → ", title, attention,
      opening: { layer: 0, head: 0 }, modules: Object.fromEntries(Object.entries(attentions).map(([kind, { modules }]) => [kind, modules])),
      choices: {
        layers: attentions[attention]?.modules.length ?? 0, heads: attention ? config.n_heads : 0, paces: PACES,
        attentions: source.length ? Object.entries(LOOKS_AT) : [],
      },
    };
    const chosen = this.instrument.chosen ?? selectionFrom(new ViewState(), about);
    await this.instrument.begin(/** @type {any} */ (api), /** @type {any} */ (about), new Tree(tokens.length), { chosen, step: null });
  }

  draw() {
    this.instrument.draw();
  }
}

/** Show a model that writes. */
export function showLiveGeneration() {
  return new LivePage((root, page) => new LiveGeneration(root, page));
}

// Starts the Attention instrument in a saved page that computes.
import { LivePage } from "../live_page.js";
import { AttentionInstrument } from "./instrument.js";
import { namesOf } from "./tensor_names.js";
/** @import { LocalApi } from "../local_api.js" */
/** @import { Overview } from "./pass.js" */

class LiveAttention {
  /** @type {LocalApi} */ api;
  /** @type {Overview} */ outline;
  reads = true;

  /** @param {HTMLElement} root @param {LivePage} page */
  constructor(root, page) {
    this.page = page;
    this.instrument = new AttentionInstrument(root, {
      select() {},
      want: (parts) => page.fetch(() => this.api.recording("tensors", { names: namesOf(this.outline, parts) }), (recording) => this.instrument.add(recording)),
      change: (change) => page.change(change),
    });
  }

  /** @param {LocalApi} api @param {import("../live_page.js").Reading} reading */
  async begin(api, { begin, next }) {
    const { model, interventions } = this.page;
    const { kind, title } = model;
    const recording = await api.recording("overview", { kind });
    const chosen = this.outline ? { ...this.instrument.chosen, query: null, key: null, zoom: null } : model.chosen;
    Object.assign(this, { api, outline: recording.metadata });
    const more = {
      offsets: { queries: kind === "encoder" ? 0 : begin, keys: kind === "self" || kind === "decoder" ? begin : 0 },
      next: kind === "cross" && next.length ? next : null, title, interventions,
    };
    this.instrument.begin({ ...recording, metadata: { ...recording.metadata, ...more } }, chosen);
  }

  draw() {
    this.instrument.draw();
  }
}

/** Show the model that lies in the page, and where it looks. */
export function showLiveAttention() {
  return new LivePage((root, page) => new LiveAttention(root, page));
}

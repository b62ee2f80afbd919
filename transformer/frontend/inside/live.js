// Starts the Inside instrument in a saved page that computes.
import { LivePage } from "../live_page.js";
import { InsideInstrument } from "./instrument.js";
import { requestParts } from "./requests.js";
/** @import { LocalApi } from "../local_api.js" */

class LiveInside {
  /** @type {LocalApi} */ api;
  reads = true;

  /** @param {HTMLElement} root @param {LivePage} page */
  constructor(root, page) {
    this.page = page;
    this.shown = 0;
    this.instrument = new InsideInstrument(root, {
      select() {},
      want: (parts) => page.fetch(() => requestParts(/** @type {any} */ (this.api), this.instrument.pass, parts), (recording) => this.instrument.add(recording)),
      change: (change) => page.change(change),
    });
  }

  /** @param {LocalApi} api @param {import("../live_page.js").Reading} reading */
  async begin(api, { begin }) {
    const { model: { title, chosen: first }, interventions } = this.page;
    const recording = await api.recording("outline");
    const chosen = this.shown ? { ...this.instrument.chosen, token: null, source: null, cell: null, candidate: null } : first;
    this.api = api;
    this.shown += 1;
    const more = { id: `${title} ${this.shown}`, title, offset: begin, interventions };
    this.instrument.begin({ ...recording, metadata: { ...recording.metadata, ...more } }, chosen);
  }

  draw() {
    this.instrument.draw();
  }
}

/** Show the model that lies in the page, and a whole pass of it. */
export function showLiveInside() {
  return new LivePage((root, page) => new LiveInside(root, page));
}

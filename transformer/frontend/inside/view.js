// Connects the Inside instrument to its page and the HTTP API.
import { pageState } from "../page/page_state.js";
import { InsideInstrument } from "./instrument.js";
import { selectionFrom, paramsFrom, toAttention } from "./view_params.js";
import { requestParts } from "./requests.js";
/** @import { Api } from "../api.js" */
/** @import { Outline } from "./pass.js" */
/** @import { About } from "./view_params.js" */

export class InsideView {
  /** @type {About} */ about;
  /** @type {Outline} */ outline;
  /** @type {Api} */ api; // of the pass that is shown, which may not be the newest yet

  constructor(root, host) {
    this.host = host;
    this.instrument = new InsideInstrument(root, {
      select: (chosen) => host.select(paramsFrom(chosen, this.about)),
      want: (parts) => host.fetch(() => requestParts(this.api, this.instrument.pass, parts), (recording) => this.instrument.add(recording)),
      change: (change) => host.change({ ...change, model: this.about.model }),
      navigate: host.navigates && ((cell) => {
        const link = toAttention(cell, this.about);
        host.navigate("Attention", link.looked, link.page);
      }),
    });
  }

  async begin(api, about) {
    const recording = await api.recording("outline");
    Object.assign(this, { api, about, outline: recording.metadata });
    const chosen = selectionFrom(pageState(), about, this.outline);
    this.instrument.begin({ ...recording, metadata: { ...recording.metadata, ...about } }, chosen);
    const { layer, head, ...selection } = paramsFrom(chosen, about);
    this.host.select(selection); // without what this pass hasn't got
  }

  setSelection() {
    if (this.outline) this.instrument.setSelection(selectionFrom(pageState(), this.about, this.outline));
  }

  draw() {
    this.instrument.draw();
  }
}

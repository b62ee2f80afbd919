// Connects the Attention instrument to its page and the HTTP API.
import { pageState } from "../page/page_state.js";
import { AttentionInstrument } from "./instrument.js";
import { namesOf } from "./tensor_names.js";
import { selectionFrom, paramsFrom, toWeight } from "./view_params.js";
/** @import { Api } from "../api.js" */
/** @import { About } from "./view_params.js" */
/** @import { Overview } from "./pass.js" */

export class AttentionView {
  /** @type {About} */ about;
  /** @type {Overview} */ outline;
  /** @type {Api} */ api; // of the pass on screen, which may not be the newest

  constructor(root, host) {
    this.host = host;
    this.instrument = new AttentionInstrument(root, {
      select: (chosen) => host.select(paramsFrom(chosen, this.about.offsets)),
      want: (parts) => host.fetch(() => this.api.recording("tensors", { names: namesOf(this.outline, parts) }), (recording) => this.instrument.add(recording)),
      change: (change) => host.change({ ...change, model: this.about.model }),
      navigate: host.navigates && ((cell) => {
        const { layer, head } = this.instrument.chosen;
        host.navigate("Inside", toWeight(this.outline, { layer, head, ...cell }, this.about));
      }),
    });
  }

  async begin(api, about) {
    const recording = await api.recording("overview", { kind: about.kind });
    Object.assign(this, { api, about, outline: recording.metadata });
    this.instrument.begin({ ...recording, metadata: { ...recording.metadata, ...about } }, selectionFrom(pageState(), about, this.outline));
    const { layer, head, query, key, zoom, derivation } = paramsFrom(this.instrument.chosen, about.offsets);
    this.host.select({ layer, head, query, key, zoom, derivation }); // without what this pass lacks
  }

  setSelection() {
    if (this.outline) this.instrument.setSelection(selectionFrom(pageState(), this.about, this.outline));
  }

  draw() {
    this.instrument.draw();
  }
}

// Connects the instrument that fills masks to its page and the HTTP API.
import { pageState } from "../page/page_state.js";
import { FillingInstrument } from "./instrument.js";
/** @import { Api } from "../api.js" */

export class FillingView {
  /** @type {Api} */ api;
  /** @type {Record<string, any>} */ about;
  /** @type {string[]} */ modules;

  constructor(root, host) {
    this.instrument = new FillingInstrument(root, {
      expect: (ids) => this.api.json("masked", { tokens: ids.join() }),
      look: async (ids, position, layer, head) => {
        const name = `${this.modules[layer]}.hook_pattern[${head}, ${position}]`;
        return [...(await this.api.recording("tensors", { tokens: ids.join(), names: [name] })).tensors[name].data];
      },
      select: (change) => host.select(change),
      fail: (error) => (error ? host.fail(error) : host.showProblem("")),
      inside: host.navigates && ((position, id) => host.navigate("Inside", { inside: "logits", moment: null, place: position, cell: [position, id].join() })),
    });
  }

  /**
   * @param {Api} api
   * @param {Record<string, any>} about what Python says beside what is asked
   */
  async begin(api, about) {
    const keeps = this.about?.id === about.id;
    Object.assign(this, { api, about, modules: about.modules });
    await this.instrument.begin(about, this.looked(), { keeps });
  }

  looked() {
    const { layers, heads, opening } = this.about;
    const state = pageState();
    const { layer, head } = state.layerAndHead(opening);
    return { layer: Math.min(layer, layers - 1), head: Math.min(head, heads - 1), position: state.number("query") };
  }

  setSelection() {
    if (this.about) this.instrument.setSelection(this.looked());
  }

  draw() {}
}

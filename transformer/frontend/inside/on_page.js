// Connects the Inside instrument to its page and the HTTP API.
import { viewState } from "../view_state.js";
import { onPage } from "../on_page.js";
import { InsideInstrument } from "./instrument.js";
import { chosenFrom, lookedFrom, toAttention } from "./view_params.js";
import { askFor } from "./questions.js";
/** @import { Api } from "../api.js" */
/** @import { Outline } from "./pass.js" */
/** @import { About } from "./view_params.js" */

class InsideView {
  /** @type {About} */ about;
  /** @type {Outline} */ outline;
  /** @type {Api} */ api; // of the pass that is shown, which may not be the newest yet

  constructor(root, host) {
    this.host = host;
    this.instrument = new InsideInstrument(root, {
      select: (chosen) => host.look(lookedFrom(chosen, this.about)),
      want: (parts) => host.fetch(() => askFor(this.api, this.instrument.pass, parts), (found) => this.instrument.add(found)),
      change: (change) => host.change({ ...change, model: this.about.model }),
      turn: (place) => {
        const found = toAttention(place, this.about);
        host.turn("Attention", found.looked, found.page);
      },
    });
  }

  async begin(api, about) {
    const found = await api.recording("outline");
    Object.assign(this, { api, about, outline: found.metadata });
    const chosen = chosenFrom(viewState(), about, this.outline);
    this.instrument.begin({ ...found, metadata: { ...found.metadata, ...about } }, chosen);
    const { layer, head, ...places } = lookedFrom(chosen, about);
    this.host.look(places); // without what this pass hasn't got
  }

  turnTo() {
    if (this.outline) this.instrument.turnTo(chosenFrom(viewState(), this.about, this.outline));
  }

  draw() {
    this.instrument.draw();
  }
}

export default function (component) {
  if (component.data) onPage(component, (root, host) => new InsideView(root, host));
}

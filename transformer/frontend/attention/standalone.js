// Attention in a saved page without a server; the whole pass is embedded in the page.
import { embedded } from "../embedded.js";
import { AttentionInstrument } from "./instrument.js";
import { partsOfWhole } from "./pass_parts.js";
/** @import { Overview } from "./pass.js" */

/** Show what lies in the page: the recordings `outline` and `whole`. */
export function showAttention() {
  const [beginning, whole] = [embedded("outline"), embedded("whole")];
  const about = /** @type {Overview} */ (beginning.metadata);
  const instrument = new AttentionInstrument(document.querySelector("main"), {
    select() {},
    want(parts) {
      // Later, as an answer from a server would come.
      setTimeout(() => instrument.add({ metadata: {}, tensors: partsOfWhole(whole, about, parts) }));
    },
  });
  instrument.begin(beginning, beginning.metadata.chosen);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => instrument.draw());
}

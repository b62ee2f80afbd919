// Starts the Attention instrument in a saved page, which has the whole pass embedded and needs no server.
import { embedded } from "../embedded_recordings.js";
import { redrawWithPage } from "../printing.js";
import { AttentionInstrument } from "../attention/instrument.js";
import { slicesOf } from "../attention/recording_slices.js";
/** @import { Overview } from "../attention/pass.js" */

/** Show what lies in the page: the recordings `outline` and `whole`. */
export function showAttention() {
  const [beginning, whole] = [embedded("outline"), embedded("whole")];
  const about = /** @type {Overview} */ (beginning.metadata);
  const instrument = new AttentionInstrument(document.querySelector("main"), {
    select() {},
    want(parts) {
      // Later, as an answer from a server would come.
      setTimeout(() => instrument.add({ metadata: {}, tensors: slicesOf(whole, about, parts) }));
    },
  });
  instrument.begin(beginning, beginning.metadata.chosen);
  redrawWithPage(() => instrument.draw());
}

// Starts the Inside instrument in a saved page, which has all data embedded and needs no server.
import { embedded } from "../embedded_recordings.js";
import { redrawWithPage } from "../printing.js";
import { InsideInstrument } from "../inside/instrument.js";

/** Show what lies in the page: the recordings `outline` and `whole`. */
export function showInside() {
  const beginning = embedded("outline");
  const instrument = new InsideInstrument(document.querySelector("main"), { select() {}, want() {} });
  instrument.begin(beginning, beginning.metadata.chosen);
  instrument.add(embedded("whole"));
  redrawWithPage(() => instrument.draw());
}

// Inside in a saved page without a server; all data is embedded in the page.
import { embedded } from "../embedded.js";
import { InsideInstrument } from "./instrument.js";

/** Show what lies in the page: the recordings `outline` and `whole`. */
export function showInside() {
  const beginning = embedded("outline");
  const instrument = new InsideInstrument(document.querySelector("main"), { select() {}, want() {} });
  instrument.begin(beginning, beginning.metadata.chosen);
  instrument.add(embedded("whole"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => instrument.draw());
}

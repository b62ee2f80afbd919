// Attention in a page of its own, without a server: the whole pass lies in the page, and is taken apart as it is asked for.
import { readRecording } from "../recording.js";
import { AttentionInstrument } from "./instrument.js";
import { partsOfWhole } from "./whole.js";

/** Show what lies in the page: the recordings `outline` and `whole`, in base64. */
export function showAttention() {
  const recordingIn = (id) =>
    readRecording(Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0)));
  const [beginning, whole] = [recordingIn("outline"), recordingIn("whole")];
  const instrument = new AttentionInstrument(document.querySelector("main"), {
    select() {},
    want(parts) {
      // Later, as an answer from a server would come.
      setTimeout(() => instrument.add({ tensors: partsOfWhole(whole, beginning.metadata, parts) }));
    },
  });
  instrument.begin(beginning, beginning.metadata.chosen);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => instrument.draw());
}

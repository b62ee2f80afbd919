// Reads the base64 recordings embedded in a saved page, which has no server.
import { readRecording } from "./recording.js";

/** The recording in the page's element of this id. */
export function embedded(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at); // of millions, a callback each would be slow
  return readRecording(bytes);
}

// Keeps this tab's membership of a room: a reload, a lost connection or a restarted server doesn't end it. Tells it with
// a number of the browser's own, by which all its tabs are one student.
import { keep, kept } from "../tab_storage.js";

export const MEMBERSHIP = "headsup_membership";
const BROWSER = "headsup_browser";

export function mountRoomMembership({ data, setTriggerValue }) {
  if (data.asks) setTriggerValue("found", `${browser()} ${kept(MEMBERSHIP)}`);
  else keep(MEMBERSHIP, data.membership);
}

/** 32 hexadecimal digits, drawn once. */
function browser() {
  const known = kept(BROWSER, "localStorage");
  if (/^[0-9a-f]{32}$/.test(known)) return known;
  const digits = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  keep(BROWSER, digits, "localStorage");
  return digits;
}

// Keeps this tab's membership of a room: a reload, a lost connection or a restarted server doesn't end it. Joins rooms, with a
// number of the browser's own, by which all its tabs are one student.
import { join } from "../room_follower/room_stream.js";
import { keep, kept } from "../tab_storage.js";

export const MEMBERSHIP = "headsup_membership";
const BROWSER = "headsup_browser";
const NO_CONNECTION = "The server can't be reached at the moment. Try again in a minute.";

/** The last join that was begun, by its number: a component is called again for the same. */
let begun = "";

export async function mountRoomMembership({ data, setTriggerValue }) {
  const found = (membership, problem = "") => setTriggerValue("found", { membership, problem });
  if (data.joins) {
    if (data.joins.id === begun) return;
    begun = data.joins.id;
    await enter(data.joins.code, "", found);
  } else if (data.asks) {
    const membership = kept(MEMBERSHIP);
    const [code, key, isTeacher] = parsed(membership);
    if (code && !isTeacher) await enter(code, key, found);
    else if (code || !data.link) found(membership);
    else await enter(data.link, "", found);
  } else {
    keep(MEMBERSHIP, data.membership);
  }
}

/** Join a room. A membership that can't be checked just now is believed: nothing is shown for it until then. */
async function enter(code, key, found) {
  const response = await join({ code, key }, browser());
  const isAway = !response || response.status === 503;
  const answer = await response?.json().catch(() => null);
  if (response?.ok) found(JSON.stringify([answer.code, answer.key, false]));
  else if (isAway && key) found(JSON.stringify([code, key, false]));
  else found("", answer?.error ?? NO_CONNECTION);
}

/** What a tab has kept, as far as it is a membership. */
function parsed(text) {
  try {
    const read = JSON.parse(text);
    return Array.isArray(read) && typeof read[0] === "string" && typeof read[1] === "string" ? read : [];
  } catch {
    return [];
  }
}

/** 32 hexadecimal digits, drawn once. */
function browser() {
  const known = kept(BROWSER, "localStorage");
  if (/^[0-9a-f]{32}$/.test(known)) return known;
  const digits = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  keep(BROWSER, digits, "localStorage");
  return digits;
}

// Keeps this tab's membership of a room: a reload, a lost connection or a restarted server doesn't end it.
import { keep, kept } from "../tab_storage.js";

const KEY = "headsup_membership";

export function mountRoomMembership({ data, setTriggerValue }) {
  if (data.asks) setTriggerValue("found", kept(KEY));
  else keep(KEY, data.membership);
}

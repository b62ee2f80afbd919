// Keeps the token of the visitor's session record for the tab, and hands it to a new session.
import { sendTo } from "../event_queue.js";
import { keep, kept } from "../tab_storage.js";

const KEY = "headsup_session";

/** data.value: the token and what else is kept with it, separated by spaces; empty for nothing to keep. */
export function mountSessionToken({ data, setTriggerValue }) {
  sendTo(data.session);
  const known = kept(KEY);
  const token = (value) => value.split(" ")[0];
  if (known && token(known) !== token(data.value) && !data.heard) setTriggerValue("found", known);
  else if (data.value) keep(KEY, data.value);
}

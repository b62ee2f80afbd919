// Keeps the token of what this tab's visitor has made in the tab's sessionStorage, where a reload, a lost connection and
// a server's restart don't reach it, and hands what it has to a session that is new.
const KEY = "headsup_session";

/** data.value: the token and what else is kept with it, separated by spaces; empty for nothing to keep. */
export default function ({ data, setTriggerValue }) {
  try {
    const kept = sessionStorage.getItem(KEY);
    const token = (value) => value.split(" ")[0];
    if (kept && token(kept) !== token(data.value) && !data.heard) setTriggerValue("found", kept);
    else if (data.value) sessionStorage.setItem(KEY, data.value);
  } catch {
    // A browser that keeps nothing: what was made goes with the session.
  }
}

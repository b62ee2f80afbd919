// Stores this tab's membership of a room in sessionStorage: a reload, a lost connection or a restarted server doesn't end it.
const KEY = "headsup_membership";

export default function ({ data, setTriggerValue }) {
  try {
    if (data.asks) {
      setTriggerValue("found", sessionStorage.getItem(KEY) ?? "");
    } else if (data.membership) sessionStorage.setItem(KEY, data.membership);
    else sessionStorage.removeItem(KEY);
  } catch {
    // A browser without sessionStorage: after a reload, the code is entered again.
    if (data.asks) setTriggerValue("found", "");
  }
}

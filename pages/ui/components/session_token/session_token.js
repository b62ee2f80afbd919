// Keeps the token of what this tab's visitor has made in the tab's sessionStorage, where a reload, a lost connection and
// a server's restart don't reach it, and hands what it has to a session that is new.
const KEY = "headsup_session";

export default function ({ data, setTriggerValue }) {
  try {
    const kept = sessionStorage.getItem(KEY);
    if (kept && kept !== data.value && !data.heard) {
      const tab = (globalThis.headsupSession ??= {});
      if (tab.told !== data.session) setTriggerValue("found", kept);
      tab.told = data.session;
    } else sessionStorage.setItem(KEY, data.value);
  } catch {
    // A browser that keeps nothing: what was made goes with the session.
  }
}

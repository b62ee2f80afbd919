// Keeps what this tab is in a room where a reload, a lost connection and a server's restart don't reach it.
const PLACE = "headsup_seat";

export default function ({ data, setTriggerValue }) {
  try {
    if (data.asks) {
      const kept = sessionStorage.getItem(PLACE);
      if (kept) setTriggerValue("found", kept);
    } else if (data.seat) sessionStorage.setItem(PLACE, data.seat);
    else sessionStorage.removeItem(PLACE);
  } catch {
    // A browser that keeps nothing: whoever reloads joins again with the code.
  }
}

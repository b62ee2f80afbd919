// Keeps what this tab is in a room where a reload, a lost connection and a server's restart don't reach it.
const PLACE = "headsup_seat";

export default function ({ data, setTriggerValue }) {
  try {
    if (data.asks) {
      setTriggerValue("found", sessionStorage.getItem(PLACE) ?? "");
    } else if (data.seat) sessionStorage.setItem(PLACE, data.seat);
    else sessionStorage.removeItem(PLACE);
  } catch {
    // A browser that keeps nothing: whoever reloads joins again with the code.
    if (data.asks) setTriggerValue("found", "");
  }
}

// Stores the tab's last address, for when the server restarts, and the parameters too long for an address, for when the
// page is reloaded.
import { viewState, NAMES } from "../../../../transformer/frontend/view_state.js";

const STORED = "headsup-left-out";

/**
 * { time, query, sent }: when it was written, its parameters that the server writes, and the selection that was just sent.
 *
 * @returns {{ time: number, query: string, sent?: Record<string, string> | null }}
 */
export function lastAddress() {
  return (globalThis.headsupAddress ??= { time: 0, query: "" });
}

/** The parameters in the address bar that say how the app is embedded. */
export function embedParameters() {
  return new URLSearchParams([...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("embed"))).toString();
}

/**
 * What a new session may not know, as { query, overflow, selection }; undefined in a new tab. Streamlit doesn't send the server what was
 * written into the address bar after the tab was opened; and if the session is lost while another page opens, the bar is empty.
 */
export function unknownToSession() {
  const { query } = lastAddress();
  const stored = storedOverflow();
  if (query) {
    const now = serverParameters().has("model") ? serverParameters().toString() : query;
    return { query: now, overflow: (sameParameters(stored.query, now) && stored.kept) || {}, selection: viewState().all() };
  }
  if (!stored.kept || !sameParameters(stored.query, serverParameters())) return undefined;
  return { query: stored.query, overflow: stored.kept, selection: viewState().all() };
}

/** Whether both are the same parameters, in any order and encoding. */
export function sameParameters(one, other) {
  const [first, second] = [one, other].map((query) => new URLSearchParams(query));
  first.sort();
  second.sort();
  return first.toString() === second.toString();
}

/** Store the parameters that are too long for the address. query: those in the address. */
export function storeOverflow(query, overflow) {
  try {
    if (Object.keys(overflow).length) sessionStorage.setItem(STORED, JSON.stringify({ query, kept: overflow }));
    else sessionStorage.removeItem(STORED);
  } catch {
    // A browser may refuse to store anything.
  }
}

/** The parameters in the address bar that the server writes. */
function serverParameters() {
  return new URLSearchParams([...new URLSearchParams(location.search)].filter(([name]) => !name.startsWith("embed") && !NAMES.has(name)));
}

function storedOverflow() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED)) ?? {};
  } catch {
    return {};
  }
}

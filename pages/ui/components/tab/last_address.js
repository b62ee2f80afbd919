// What this tab was last told to show: its parameters, kept as long as its document lives, whatever becomes of the server; and those
// that its address has no room for, which outlive a reload.
import { viewState, NAMES } from "../../../../transformer/frontend/view_state.js";

const KEPT = "headsup-left-out";

/**
 * { at, query, said }: when, the parameters in the address bar that the server writes, and what the tab has just said that it holds.
 *
 * @returns {{ at: number, query: string, said?: Record<string, string> | null }}
 */
export function lastAddress() {
  return (globalThis.headsupAddress ??= { at: 0, query: "" });
}

/** The parameters in the bar that say how the app is framed. */
export function ofTheFrame() {
  return new URLSearchParams([...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("embed"))).toString();
}

/**
 * What a session that begins may not know, as { query, kept, looked }; undefined in a tab that is new. The server isn't told what was
 * written into the bar of a tab that was opened by a link. And the bar is empty where another page is asked for as the session is lost.
 */
export function unknownToSession() {
  const { query } = lastAddress();
  const left = leftOut();
  if (query) {
    const now = own().has("model") ? own().toString() : query;
    return { query: now, kept: (sameParameters(left.query, now) && left.kept) || {}, looked: viewState().all() };
  }
  return left.kept && sameParameters(left.query, own()) ? { ...left, looked: viewState().all() } : undefined;
}

/** Whether both are the same parameters, encoded in whatever way and order. */
export function sameParameters(one, other) {
  const [first, second] = [one, other].map((each) => new URLSearchParams(each));
  first.sort();
  second.sort();
  return first.toString() === second.toString();
}

/** Keep what the address has no room for: an object of parameters. query: those that it has. */
export function keepLeftOut(query, kept) {
  try {
    if (Object.keys(kept).length) sessionStorage.setItem(KEPT, JSON.stringify({ query, kept }));
    else sessionStorage.removeItem(KEPT);
  } catch {
    // A browser may refuse to keep anything.
  }
}

/** Those that it does. */
function own() {
  return new URLSearchParams([...new URLSearchParams(location.search)].filter(([name]) => !name.startsWith("embed") && !NAMES.has(name)));
}

function leftOut() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

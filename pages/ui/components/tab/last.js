// What this tab was last told to show: its parameters, kept as long as its document lives, whatever becomes of the server; and those
// that its address has no room for, which outlive a reload.

const KEPT = "headsup-left-out";

/** { at, query, looked }: when, the parameters in the address bar, and the names of those that the browser writes by itself. */
export function lastAddress() {
  return (globalThis.headsupAddress ??= { at: 0, query: "", looked: [] });
}

/** The parameters in the bar that Python doesn't write. */
export function otherParameters() {
  const { looked } = lastAddress();
  return [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("embed") || looked.includes(name));
}

/**
 * What a session that begins may not know, as { query, kept }; undefined in a tab that is new. The server isn't told what was written
 * into the bar of a tab that was opened by a link. And the bar is empty where another page is asked for as the session is lost.
 */
export function unknownToSession() {
  const { query } = lastAddress();
  const left = leftOut();
  if (query) {
    const now = own().has("model") ? own().toString() : query;
    return { query: now, kept: (sameParameters(left.query, now) && left.kept) || {} };
  }
  return left.kept && sameParameters(left.query, own()) ? left : undefined;
}

/** Whether both are the same parameters, encoded in whatever way. */
export const sameParameters = (one, other) => new URLSearchParams(one).toString() === new URLSearchParams(other).toString();

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
  const found = new URLSearchParams(location.search);
  for (const [name] of otherParameters()) found.delete(name);
  return found;
}

function leftOut() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

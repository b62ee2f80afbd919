// What this tab was last told to show: its parameters, kept as long as its document lives, whatever becomes of the server; and those
// that its address has no room for, which outlive a reload.

const KEPT = "headsup-left-out";

/** { at, query, looked }: when, the parameters in the address bar, and the names of those that the browser writes by itself. */
export function lastAddress() {
  return (globalThis.headsupAddress ??= { at: 0, query: "", looked: [] });
}

/** The parameters in the bar that Python doesn't write. */
export function others() {
  const { looked } = lastAddress();
  return [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("embed") || looked.includes(name));
}

/** What a session that begins can't know from the address: { query, kept }; undefined if there is nothing. */
export function unknownToSession() {
  const { query } = lastAddress();
  const left = leftOut();
  if (query && !isInBar(query)) return { query, kept: left.query === query ? left.kept : {} };
  return left.query && isInBar(left.query) ? left : undefined;
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

function isInBar(query) {
  const bar = new URLSearchParams(location.search);
  for (const [name] of others()) bar.delete(name);
  return bar.toString() === new URLSearchParams(query).toString();
}

function leftOut() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

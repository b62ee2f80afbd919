// What this tab was last told to show: its parameters, kept as long as its document lives, whatever becomes of the server; and those
// that its address has no room for, which outlive a reload.
import { looked, NAMES } from "../../../../transformer/frontend/looked.js";

const KEPT = "headsup-left-out";

/** { at, run, query }: when, in which run, and the parameters that are computed from. */
export function lastAddress() {
  return (globalThis.headsupAddress ??= { at: 0, run: 0, query: "" });
}

/** The address that the tab was opened with, or has come back to: Streamlit tells the server this one until another page is opened. */
let arrival = globalThis.location?.search;
globalThis.addEventListener?.("popstate", () => (arrival = location.search), { capture: true });
export const isArrival = (query) => sameParameters(query, without(arrival, isEmbedding));

/**
 * What a session that begins may not know, as { query, kept }; undefined in a tab that is new. The bar is empty where another page is
 * asked for as the session is lost.
 */
export function unknownToSession() {
  const { query } = lastAddress();
  const own = ownPart(location.search);
  const left = leftOut();
  const kept = (of) => (sameParameters(left.query, of) && left.kept) || {};
  if (query) {
    const isInBar = new URLSearchParams(own).has("model");
    return { query: isInBar ? without(location.search, isEmbedding) : looked().merged(query), kept: kept(isInBar ? own : query) };
  }
  return left.kept && sameParameters(left.query, own) ? { query: without(location.search, isEmbedding), kept: left.kept } : undefined;
}

/** Keep what the address has no room for: an object of parameters. query: those that it has, and are computed from. */
export function keepLeftOut(query, kept) {
  try {
    if (Object.keys(kept).length) sessionStorage.setItem(KEPT, JSON.stringify({ query, kept }));
    else sessionStorage.removeItem(KEPT);
  } catch {
    // A browser may refuse to keep anything.
  }
}

/** Whether both are the same parameters, in whatever order and encoding. */
export function sameParameters(one, other) {
  const [first, second] = [one, other].map((each) => new URLSearchParams(each));
  first.sort();
  second.sort();
  return first.toString() === second.toString();
}

const isEmbedding = (name) => name.startsWith("embed");
const ownPart = (search) => without(search, (name) => isEmbedding(name) || NAMES.has(name));

function without(search, isMeant) {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([name]) => !isMeant(name))).toString();
}

function leftOut() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

// What Python doesn't write into the address bar of the app: the part of the page state that is looked at.
import { PageState, pageState, replaceAddress } from "./page/page_state.js";

export const NAMES = new Set([
  "layer", "head", "query", "key", "stage", "zoom", "without", "order", "direction", "derivation", "inside", "place", "source_place",
  "cell", "heads", "moment", "folds", "candidate", "circuit", "step", "written", "branches", "temperature", "top_k", "top_p", "seed",
  "tokens", "pace", "attention",
]);

/** The tab's page state, of which only these values are read and written. */
export function viewState() {
  const state = pageState();
  const all = () => Object.fromEntries(Object.entries(state.all()).filter(([name]) => NAMES.has(name)));
  const merged = (search) => {
    const others = [...new URLSearchParams(search)].filter(([name]) => !NAMES.has(name));
    return new PageState(new URLSearchParams([...others, ...Object.entries(all())])).addressed(search).query;
  };
  state.write = () => replaceAddress(merged(location.search));
  return { all, merged, set: (change) => state.set(change) };
}

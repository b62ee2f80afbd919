// Holds this tab's selection: layer, head, token, open views. All instruments on all pages share it, and the address
// bar holds it, as a link does. Python needn't know; it reads the bar when it draws something of it.
//
// Values are texts, as a link has them; what is as at first isn't there. Positions count the tokens of the whole text.

const EVERY_MS = 400; // the bar follows so often: browsers allow a hundred changes in half a minute
const LONGEST = 7_500; // characters of an address: many servers refuse a line over 8,000
const MESSAGE = "SET_QUERY_PARAM"; // tells a page that frames the app what its bar should hold (as Streamlit does)

/** The parameters of a link that are looked at, and not computed from. */
export const NAMES = new Set([
  "layer", "head", "query", "key", "stage", "zoom", "without", "order", "direction", "derivation", "inside", "place", "source_place",
  "cell", "heads", "moment", "folds", "candidate", "circuit", "step", "written", "branches", "temperature", "top_k", "top_p", "seed",
  "tokens", "pace", "attention",
]);
const SACRIFICES = [["branches"], ["written", "step"]]; // what an address has no room for, in this order

export class ViewState {
  /** search: of the address, to begin with. write(search): puts a new one into the bar. */
  constructor(search = "", write = () => {}) {
    this.values = new Map([...new URLSearchParams(search)].filter(([name]) => NAMES.has(name)));
    this.write = write;
    this.listeners = new Set();
  }

  get(name) {
    return this.values.get(name) ?? null;
  }

  /** All values by name. */
  all() {
    return Object.fromEntries(this.values);
  }

  /** A whole number, or null. */
  number(name) {
    const text = this.get(name);
    return text !== null && /^\d+$/.test(text) ? Number(text) : null;
  }

  /** Several whole numbers with commas between them, or null. */
  numbers(name) {
    const text = this.get(name);
    return text !== null && /^\d+(,\d+)*$/.test(text) ? text.split(",").map(Number) : null;
  }

  /**
   * Look at something else: values by name, null for what is as at first. by: who says so, and needn't be told. Returns whether
   * it is something else.
   */
  set(change, by = null) {
    let isOther = false;
    for (const [name, value] of Object.entries(change)) {
      const text = value === null || value === undefined || value === "" ? null : String(value);
      if (!NAMES.has(name) || this.get(name) === text) continue;
      isOther = true;
      if (text === null) this.values.delete(name);
      else this.values.set(name, text);
    }
    if (!isOther) return false;
    this.timer ??= setTimeout(() => this.flush(), EVERY_MS);
    for (const listener of this.listeners) if (listener !== by) listener();
    return true;
  }

  /** Look at what an address says, and at nothing else. */
  become(search) {
    const parameters = new URLSearchParams(search);
    this.set(Object.fromEntries([...NAMES].map((name) => [name, parameters.get(name)])));
  }

  /** Call `listener` whenever somebody else looks at something else. Returns what ends that. */
  follow(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Bring the bar up to date now. */
  flush() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.write();
  }

  /** The parameters of an address with what is looked at in the place of what it had of that. */
  merged(search) {
    const others = [...new URLSearchParams(search)].filter(([name]) => !NAMES.has(name));
    const values = new Map(this.values);
    const text = () => new URLSearchParams([...others, ...values]).toString();
    for (const names of SACRIFICES) if (text().length > LONGEST) for (const name of names) values.delete(name);
    return text();
  }
}

let shared;

/** What is looked at in this tab. */
export function viewState() {
  if (!shared) {
    shared = new ViewState(location.search, () => replaceAddress(shared.merged(location.search)));
    const flush = () => shared.flush();
    // What is pressed may run the page, which reads the bar.
    for (const kind of ["pointerdown", "keydown", "pagehide"]) addEventListener(kind, flush, { capture: true });
    // An address without parameters was left before they were written.
    addEventListener("popstate", () => location.search && shared.become(location.search), { capture: true });
  }
  return shared;
}

/** Have the bar hold these parameters, without an entry in the history; a page that frames the app is told. */
export function replaceAddress(search) {
  const query = search ? `?${search}` : "";
  if (location.search === query) return;
  try {
    history.replaceState(history.state, "", `${location.pathname}${query}${location.hash}`);
    if (parent !== window) parent.postMessage({ stCommVersion: 1, type: MESSAGE, queryParams: query }, "*");
  } catch {
    // Browsers allow so many changes in half a minute and no more; a later one brings the bar up to date.
  }
}

// The page state: all that a link holds, from the model and the prompt to the layer and the token that are looked at. A tab has
// one, and its address bar shows it. Values are texts, as a link has them; a parameter at its default isn't there. Positions
// count the tokens of the whole text.

import { store, stored } from "../browser_storage.js";
import table from "../parameters.json" with { type: "json" };

const EVERY_MS = 400; // between two writes to the bar: browsers allow a hundred in half a minute
const LEFT_OUT = "headsup-page-state"; // where the tab keeps what its address has no room for
const MESSAGE = "SET_QUERY_PARAM"; // tells a page that frames the app what its own bar should hold

/** @typedef {{ name: string, kind: string, default: any, first?: any, low?: number, high?: number, options?: string[], longest?: number, called?: string, of?: string[], needs?: string[], left_out?: number, aliases?: Record<string, string> }} Parameter */

/** @typedef {{ get: (name: string) => string | null, arrivals: number }} StateReader */

/** @type {Map<string, Parameter>} */
const TABLE = new Map(table.parameters.map((parameter) => [parameter.name, /** @type {any} */ (parameter)]));

/** What the table says of a parameter: its default, and what can be given. @param {string} name */
export const parameter = (name) => TABLE.get(name);

/** The model of a link that names none. */
export const DEFAULT_MODEL = TABLE.get("model").default;

/** The model of an address without parameters. */
export const FIRST_MODEL = TABLE.get("model").first;

/** Characters that a prompt may have. */
export const LONGEST_PROMPT = TABLE.get("prompt").longest;

/** What an address has no room for, first what is missed least. */
const SACRIFICES = [...TABLE.values()].filter(({ left_out: rank }) => rank).sort((one, other) => one.left_out - other.left_out).map(({ name }) => name);

/** What a parameter is where a state doesn't say it. @param {string} name */
export const defaultOf = (name) => TABLE.get(name).default;

/** What parameters are called in a sentence. @param {string[]} names */
export const calledOf = (names) => names.map((name) => TABLE.get(name).called ?? name);

/** The parameters of which a column names this one. @param {"of" | "needs"} column @param {string} name */
const namesWith = (column, name) => [...TABLE.values()].filter((parameter) => parameter[column]?.includes(name)).map((parameter) => parameter.name);

export class PageState {
  /**
   * @param {string | URLSearchParams} [search] of an address
   * @param {() => void} [write] brings the address bar up to date
   */
  constructor(search = "", write = () => {}) {
    this.values = valuesOf(search);
    this.write = write;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    this.arrivals = 0; // how often a link, a lesson, or Back has set the whole state
    /** @type {Record<string, string>} what was held before the last of them */
    this.before = {};
    /** @type {Map<string, string | null>} the changes of models that were chosen before */
    this.changesOf = new Map();
  }

  /** @param {string} name @returns {string | null} */
  get(name) {
    return this.values.get(name) ?? null;
  }

  /** All values by name. @returns {Record<string, string>} */
  all() {
    return Object.fromEntries(this.values);
  }

  /** A whole number, or null. @param {string} name */
  number(name) {
    const text = this.get(name);
    return text !== null && /^\d+$/.test(text) ? Number(text) : null;
  }

  /** Several whole numbers with commas between them, or null. @param {string} name */
  numbers(name) {
    const text = this.get(name);
    return text !== null && /^\d+(,\d+)*$/.test(text) ? text.split(",").map(Number) : null;
  }

  /**
   * The layer and the head to show. Where a link has one of them, the other is 0.
   *
   * @param {{ layer: number, head: number } | null | undefined} opening what is worth seeing first
   */
  layerAndHead(opening) {
    const [layer, head] = [this.number("layer"), this.number("head")];
    const isFirst = layer === null && head === null;
    return { layer: layer ?? (isFirst && opening?.layer || 0), head: head ?? (isFirst && opening?.head || 0) };
  }

  /**
   * Change values; null stands for a default. Returns whether anything is different now.
   *
   * @param {Record<string, unknown>} change
   * @param {(() => void) | null} [by] the listener that needn't be called
   */
  set(change, by = null) {
    let isOther = false;
    for (const [name, value] of Object.entries(change)) {
      const text = isDefault(name, value) ? null : String(value);
      if (!TABLE.has(name) || this.get(name) === text) continue;
      isOther = true;
      if (text === null) this.values.delete(name);
      else this.values.set(name, text);
    }
    if (isOther) this.changed(by);
    return isOther;
  }

  /**
   * Set one value, and reset what belonged to the one before. A model's changes are put away with it, and come back with it.
   *
   * @param {"model" | "prompt"} name
   * @param {string | null} value
   * @param {Record<string, string | null>} [others] of those that belong to it, which are set and not reset
   */
  choose(name, value, others = {}) {
    const reset = Object.fromEntries(namesWith("of", name).map((other) => [other, null]));
    if (name === "model") {
      this.changesOf.set(this.get("model") ?? DEFAULT_MODEL, this.get("changes"));
      reset.changes = this.changesOf.get(value) ?? null;
    }
    if (this.set({ ...reset, ...others, [name]: value })) this.flush(); // Back may follow within the pause between two writes
  }

  /** Hold what an address says, and what it had no room for; nothing else. @param {string | URLSearchParams} search @param {Record<string, string>} [leftOut] */
  become(search, leftOut = {}) {
    this.before = this.all();
    this.values = new Map([...Object.entries(leftOut), ...valuesOf(search)]);
    this.arrivals += 1;
    this.changed(null);
  }

  changed(by) {
    this.timer ??= setTimeout(() => this.flush(), EVERY_MS);
    for (const listener of [...this.listeners]) if (listener !== by) listener();
  }

  /** Call `listener` after every change by somebody else. Returns what ends that. @param {() => void} listener */
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

  /**
   * What an address holds of this state, and what it has no room for. search: the address so far, whose parameters that aren't ours
   * stay, such as those that embed the page.
   *
   * @param {string} [search]
   * @returns {{ query: string, leftOut: Record<string, string> }}
   */
  addressed(search = "") {
    const others = [...new URLSearchParams(search)].filter(([name]) => !TABLE.has(name));
    const values = new Map([...TABLE.keys()].filter((name) => this.values.has(name)).map((name) => [name, this.values.get(name)]));
    const query = () => new URLSearchParams([...others, ...values]).toString();
    /** @type {Record<string, string>} */
    const leftOut = {};
    for (const sacrifice of SACRIFICES) {
      if (query().length <= table.longest_address) break;
      for (const name of values.get(sacrifice) ? [sacrifice, ...namesWith("needs", sacrifice)] : []) {
        if (values.has(name)) leftOut[name] = values.get(name);
        values.delete(name);
      }
    }
    return { query: query(), leftOut };
  }
}

/** An empty text is a default, unless somebody typed it instead of what is suggested. @param {string} name @param {unknown} value */
function isDefault(name, value) {
  const isTyped = TABLE.get(name)?.kind === "text" && TABLE.get(name).default === null;
  return value === null || value === undefined || (value === "" && !isTyped);
}

/** What a page's view is begun with, and from then on changes by itself. */
const OF_VIEWS = { Generate: ["written", "attention"] };

/** Reads a page state for a page, and notes what it has read: what is shown is computed from that. */
export class NotingReader {
  /** @param {PageState} state @param {string} page */
  constructor(state, page) {
    this.state = state;
    this.arrivals = state.arrivals;
    this.ofView = new Set(OF_VIEWS[page]);
    /** @type {Map<string, string | null>} */
    this.values = new Map();
  }

  /** @param {string} name */
  get(name) {
    if (!this.values.has(name)) this.values.set(name, this.state.get(name));
    return this.values.get(name);
  }

  /** Whether a page state has something else of what was read. @param {PageState} state */
  isOutdated(state) {
    return this.arrivals !== state.arrivals || [...this.values].some(([name, value]) => !this.ofView.has(name) && state.get(name) !== value);
  }
}

/** The parameters of an address that the table has, values under their present names. @param {string | URLSearchParams} search */
function valuesOf(search) {
  const known = [...new URLSearchParams(search)].filter(([name]) => TABLE.has(name));
  return new Map(known.map(([name, value]) => [name, TABLE.get(name).aliases?.[value] ?? value]));
}

/** @type {PageState | undefined} */
let shared;

/** That of this tab. */
export function pageState() {
  if (!shared) {
    shared = new PageState(location.search, () => {
      const { query, leftOut } = shared.addressed(location.search);
      replaceAddress(query);
      storeLeftOut(query, leftOut);
    });
    shared.values = new Map([...Object.entries(storedLeftOut(location.search)), ...shared.values]);
    const flush = () => shared.flush();
    // What is pressed may open another page, which reads the bar.
    for (const kind of ["pointerdown", "keydown", "pagehide"]) addEventListener(kind, flush, { capture: true });
    // An address without parameters was left before they were written.
    addEventListener("popstate", () => location.search && shared.become(location.search, storedLeftOut(location.search)), { capture: true });
  }
  return shared;
}

/** Have the bar hold these parameters, without an entry in the history; a page that frames this one is told. @param {string} search */
export function replaceAddress(search) {
  const query = search ? `?${search}` : "";
  if (location.search === query) return;
  try {
    history.replaceState(history.state, "", `${location.pathname}${query}${location.hash}`);
    if (parent !== window) parent.postMessage({ stCommVersion: 1, type: MESSAGE, queryParams: query }, "*");
  } catch {
    // Browsers allow so many changes in half a minute and no more, and none in a frame without an address.
  }
}

/** @param {string} query @param {Record<string, string>} leftOut */
function storeLeftOut(query, leftOut) {
  store(LEFT_OUT, Object.keys(leftOut).length ? { query, leftOut } : null);
}

/** @param {string} search @returns {Record<string, string>} what was left out of this very address */
function storedLeftOut(search) {
  const found = stored(LEFT_OUT);
  return found?.query === new URLSearchParams(search).toString() ? found.leftOut : {};
}

// Stores small values in the browser: for this tab over a reload (sessionStorage), or for all its tabs (localStorage). What a
// browser refuses to store lasts as long as the page is open.

/** @typedef {"sessionStorage" | "localStorage"} Where */

/** @type {Map<string, any>} what was refused; a page may have this module twice */
const refused = (globalThis.headsupRefused ??= new Map());

/** The value under a name; null for none. @param {string} name @param {Where} [where] */
export function stored(name, where = "sessionStorage") {
  if (refused.has(name)) return refused.get(name);
  try {
    return JSON.parse(globalThis[where].getItem(name));
  } catch {
    return null; // no storage, or nothing of ours in it
  }
}

/** Store a value as JSON; null removes it. @param {string} name @param {any} value @param {Where} [where] */
export function store(name, value, where = "sessionStorage") {
  refused.delete(name);
  try {
    if (value === null) globalThis[where].removeItem(name);
    else globalThis[where].setItem(name, JSON.stringify(value));
  } catch {
    refused.set(name, value);
  }
}

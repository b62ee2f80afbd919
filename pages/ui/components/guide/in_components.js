// Finds elements in the components of a page, each of which has a shadow tree.

const COMPONENT = "[data-testid=stBidiComponentIsolated]";

/** @param {string} selector @param {ParentNode} within @returns {HTMLElement[]} */
export function inComponents(selector, within = document) {
  return [...within.querySelectorAll(COMPONENT)].flatMap(({ shadowRoot }) => [...(shadowRoot?.querySelectorAll(selector) ?? [])].map((found) => /** @type {HTMLElement} */ (found)));
}

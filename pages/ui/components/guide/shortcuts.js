// Handles single-key shortcuts, which are off while the visitor types or has turned them off; and finds the focused
// element.
import { store, stored } from "../../../../transformer/frontend/browser_storage.js";

const KEPT = "headsup-keys";

/** Whether keys pressed on an element write into it. */
export function isTyped(element) {
  return Boolean(element?.matches?.("input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable=true]"));
}

/** Whether single keys do anything; who speaks to a computer may want them off (WCAG 2.1, 2.1.4). */
export const areKeysOn = () => stored(KEPT, "localStorage") !== false;

export const turnKeys = (isOn) => store(KEPT, isOn, "localStorage");

/** acts: by key, what each does. */
export function listenForKeys(acts) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyped(event.composedPath()[0]) || !areKeysOn()) return;
    const act = acts[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    act();
  }, { capture: true });
}

/** What has the focus, in whichever shadow tree. @returns {HTMLElement | null} */
export function focused() {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return /** @type {HTMLElement | null} */ (element);
}

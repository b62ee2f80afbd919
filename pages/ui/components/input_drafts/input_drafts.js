// Keeps what is typed into a field and not yet applied over a reload or a restart of the server. It comes back into its
// field and waits to be applied. (Streamlit takes it for applied when the connection is lost, and forgets it with the
// next change of page.) The shell keeps its prompt by itself.
import { store, stored } from "../../../../transformer/frontend/browser_storage.js";
import { isComposing } from "../../../../transformer/frontend/dom.js";

const NAME = "headsup_input_drafts";
const FIELDS = "[data-testid=stTextArea] textarea, [data-testid=stTextInput] input";
/** @typedef {HTMLInputElement | HTMLTextAreaElement} Field */
const LOOK_EVERY_MS = 100;
const LOOKS = 50; // for the field, which the page may be about to draw

const labelOf = (field) => field.getAttribute("aria-label") ?? "";
/** @returns {target is Field} */
const isField = (target) => target instanceof Element && target.matches(FIELDS);
const reachesPython = () => Boolean(document.querySelector("[data-test-connection-state=CONNECTED]"));

/** Whether the page was opened by a link, and is no reload and no way back. */
const isByLink = () => performance.getEntriesByType("navigation").some((opened) => /** @type {PerformanceNavigationTiming} */ (opened).type === "navigate");

function listen(tab) {
  const applied = () => !tab.isLeaving && reachesPython() && store(NAME, null);
  document.addEventListener("input", ({ target }) => {
    if (isField(target)) store(NAME, { label: labelOf(target), text: target.value, path: location.pathname });
  }, true);
  // A field that is disabled while the server is away loses the cursor, too, without being left.
  document.addEventListener("focusout", ({ target }) => isField(target) && !target.disabled && applied(), true);
  document.addEventListener("keydown", (event) => {
    const { target, key, ctrlKey, metaKey } = event;
    if (key === "Enter" && !isComposing(event) && isField(target) && (ctrlKey || metaKey || target.tagName === "INPUT")) applied();
  }, true);
  addEventListener("pagehide", () => { tab.isLeaving = true; });
  addEventListener("pageshow", () => { tab.isLeaving = false; });
  const app = document.querySelector("[data-test-connection-state]");
  if (!app) return;
  let wasHere = reachesPython();
  new MutationObserver(() => {
    const isHere = reachesPython();
    if (isHere && !wasHere) bringBack(false);
    wasHere = isHere;
  }).observe(app, { attributeFilter: ["data-test-connection-state"] });
}

/**
 * Put what was typed into its field, as if by hand, and the cursor behind it; again should the page, which is still being
 * drawn, put something else there. isNew: the page has just been loaded.
 */
function bringBack(isNew, looks = LOOKS) {
  const typed = stored(NAME);
  if (!typed || typed.path !== location.pathname || looks <= 0) return;
  const again = () => setTimeout(bringBack, LOOK_EVERY_MS, false, looks - 1);
  /** @type {NodeListOf<Field>} */
  const fields = document.querySelectorAll(FIELDS);
  const field = [...fields].find((candidate) => labelOf(candidate) === typed.label && !candidate.disabled);
  if (!field) {
    setTimeout(bringBack, LOOK_EVERY_MS, isNew, looks - 1);
    return;
  }
  if (document.activeElement === field && field.value === typed.text) {
    again(); // somebody is typing on, or nothing is left to do
    return;
  }
  if (isNew && field.value === typed.text) {
    store(NAME, null); // it was applied after all
    return;
  }
  const put = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set; // React's own is in the way
  for (const text of [`${typed.text} `, typed.text]) { // a field that has the text already must notice it, too
    put.call(field, text);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  field.focus();
  field.setSelectionRange(typed.text.length, typed.text.length);
  again();
}

export function mountInputDrafts({ data }) {
  const tab = (globalThis.headsupInputDrafts ??= {});
  if (tab.session === data.session) return; // called again, by a change of theme or page
  const isNew = !tab.session;
  if (isNew && isByLink()) store(NAME, null); // which says itself what the page is to show
  if (isNew) listen(tab);
  tab.session = data.session;
  bringBack(isNew);
}

// Keeps what is being typed into a box until the box is left or the text applied, which Streamlit then knows of. When the
// page was reloaded, or the server was away, it comes back into its box and waits to be applied. (Streamlit takes it for
// applied when the connection is lost, and forgets it with the next change of page.)
const NAME = "headsup_typed";
const BOXES = "[data-testid=stTextArea] textarea, [data-testid=stTextInput] input";
/** @typedef {HTMLInputElement | HTMLTextAreaElement} Box */
const LOOK_EVERY_MS = 100;
const LOOKS = 50; // for the box, which the page may be about to draw

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(NAME));
  } catch {
    return null; // nothing that this script wrote, or a browser that keeps nothing
  }
}

function store(typed) {
  try {
    if (typed) sessionStorage.setItem(NAME, JSON.stringify(typed));
    else sessionStorage.removeItem(NAME);
  } catch {
    // A browser that keeps nothing, or has no room.
  }
}

const labelOf = (box) => box.getAttribute("aria-label") ?? "";
/** @returns {target is Box} */
const isBox = (target) => target instanceof Element && target.matches(BOXES);
const reachesPython = () => Boolean(document.querySelector("[data-test-connection-state=CONNECTED]"));

function listen(tab) {
  const applied = () => !tab.isLeaving && reachesPython() && store(null);
  document.addEventListener("input", ({ target }) => {
    if (isBox(target)) store({ label: labelOf(target), text: target.value, path: location.pathname });
  }, true);
  // A box that is disabled while the server is away loses the cursor, too, without being left.
  document.addEventListener("focusout", ({ target }) => isBox(target) && !target.disabled && applied(), true);
  document.addEventListener("keydown", ({ target, key, ctrlKey, metaKey }) => {
    if (key === "Enter" && isBox(target) && (ctrlKey || metaKey || target.tagName === "INPUT")) applied();
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
 * Put what was typed into its box, as if by hand, and the cursor behind it; again should the page, which is still being
 * drawn, put something else there. isNew: the page has just been loaded.
 */
function bringBack(isNew, looks = LOOKS) {
  const typed = stored();
  if (!typed || typed.path !== location.pathname || looks <= 0) return;
  const again = () => setTimeout(bringBack, LOOK_EVERY_MS, false, looks - 1);
  /** @type {NodeListOf<Box>} */
  const boxes = document.querySelectorAll(BOXES);
  const box = [...boxes].find((found) => labelOf(found) === typed.label && !found.disabled);
  if (!box) {
    setTimeout(bringBack, LOOK_EVERY_MS, isNew, looks - 1);
    return;
  }
  if (document.activeElement === box && box.value === typed.text) {
    again(); // somebody is typing on, or nothing is left to do
    return;
  }
  if (isNew && box.value === typed.text) {
    store(null); // it was applied after all
    return;
  }
  const put = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(box), "value").set; // React's own is in the way
  for (const text of [`${typed.text} `, typed.text]) { // a box that has the text already must notice it, too
    put.call(box, text);
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }
  box.focus();
  box.setSelectionRange(typed.text.length, typed.text.length);
  again();
}

export default function ({ data }) {
  const tab = (globalThis.headsupTyped ??= {});
  if (tab.session === data.session) return; // called again, by a change of theme or page
  const isNew = !tab.session;
  if (isNew) listen(tab);
  tab.session = data.session;
  bringBack(isNew);
}

// Runs an instrument as a component of the app: a view in its frame, whose events go to Python.
import { Api } from "./api.js";
import { pageState } from "./page/page_state.js";
import { ViewFrame } from "./page/view_frame.js";
import { pageChange } from "./page_change.js";
/** @import { ApiOf, View } from "./page/view_frame.js" */
/** @import { Parameters } from "./api.js" */

/**
 * What Streamlit calls a component with. request: the parameters of every question; token: of an own model, or null; sends_selection:
 * whether the page says something of what is looked at, and so is to be run when that is something else; the rest is about the request.
 *
 * @typedef {object} Component
 * @property {{ request: Parameters, token: string | null, sends_selection?: boolean, in_browser?: boolean, [about: string]: any }} data
 * @property {HTMLElement} parentElement
 * @property {(name: string, value: unknown) => void} setTriggerValue
 * @property {ApiOf} [apiOf] left out: the server
 */

const REST_MS = 400; // after which a page that follows is told that something else is looked at
const frames = new WeakMap();

/**
 * Show what a page's component is given.
 *
 * @param {Component} component
 * @param {(root: HTMLElement, host: ViewFrame) => View} make
 */
export function onPage(component, make) {
  const { data, parentElement, setTriggerValue, apiOf } = component;
  /** @type {HTMLElement | null} */
  const root = parentElement.querySelector("[data-part=root]");
  if (!root) { // the markup may come after the first call
    if (parentElement.isConnected) requestAnimationFrame(() => onPage(component, make));
    return;
  }
  const { request, token, sends_selection: sendsSelection, ...about } = data;
  let frame = frames.get(parentElement);
  if (!frame?.root.isConnected) frames.set(parentElement, (frame = new ViewFrame(root, make, () => {})));
  frame.notify = (event, value) => (event === "select" ? sendsSelection && sendLater(frame, setTriggerValue) : setTriggerValue(event, value));
  pageChange();
  frame.show(request, about, apiOf ?? ((asked) => new Api(asked, { token })));
}

function sendLater(frame, send) {
  clearTimeout(frame.resting);
  frame.resting = setTimeout(() => {
    pageState().flush();
    if (frame.root.isConnected) send("select", pageState().all());
  }, REST_MS);
}

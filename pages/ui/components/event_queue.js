// Queues the events of components until the server has heard them. Streamlit's triggers can be overtaken: of two in one run
// it delivers the later one. A component's state is sent with every run of its page, and so holds all that is waiting; what
// a page left behind when another was opened, the next page's address bar sends.
import { followedLink, pageChange } from "../host/page_change.js";
import { readRecording } from "../../../transformer/frontend/recording.js";

const EVENTS = "events";
const MOST = 100; // as in events.py
const LEAVING_MS = 250; // after which it is looked again whether the page is being left
const OF_THEIR_PAGE = new Set(["select", "selection", "navigate", "restored", "found", "changed"]); // of which the last counts, and none to another page

/**
 * @typedef {(name: string, value: unknown) => void} Setter Streamlit's setStateValue
 * @typedef {{ number: number, component: string, name: string, value: unknown }} Event
 * @typedef {{ event: Event, place: string, path: string }} Waiting place: of the component on the screen; path: of its page
 */

/**
 * Of this tab. session: of the server, as far as known; path: of the page that is open; setters: by place.
 *
 * @type {{ session: string, path: string, last: number, waiting: Waiting[], setters: Map<string, Setter> }}
 */
const queue = (globalThis.headsupEvents ??= { session: "", path: "", last: 0, waiting: [], setters: new Map() });

let isBeingSent = false;
let listens = false;

/** Streamlit sends an event a moment after it is set. A link that was followed in between would be overtaken, and its page not opened. */
function holdLinks() {
  if (listens) return;
  listens = true;
  addEventListener("click", (event) => {
    const link = isBeingSent && followedLink(event);
    if (!link) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    setTimeout(() => link.click(), 0);
  }, { capture: true });
}

/**
 * What a component sends its events with.
 *
 * @param {{ key: string, data: any, setStateValue: Setter }} component
 * @returns {(name: string, value: unknown) => void}
 */
export function senderOf({ key: place, data, setStateValue }) {
  holdLinks();
  return (name, value) => {
    const component = data instanceof Uint8Array ? readRecording(data).metadata.about.key : data.key;
    queue.last += 1;
    const isOverdue = ({ event }) => OF_THEIR_PAGE.has(name) && event.component === component && event.name === name;
    queue.waiting = [...queue.waiting.filter((each) => !isOverdue(each)), { event: { number: queue.last, component, name, value }, place, path: queue.path }].slice(-MOST);
    queue.setters.set(place, setStateValue);
    send(place);
  };
}

/** Send events to this session of the server. It may be a new one, as after a restart: then what is waiting is sent anew. @param {string} session */
export function sendTo(session) {
  if (session === queue.session) return;
  queue.session = session;
  for (const place of queue.setters.keys()) send(place);
}

/**
 * A page is drawn. heard: the numbers of events that needn't be sent again; key: where the address bar stands.
 *
 * @param {{ heard: number[], path: string }} page
 * @param {{ key: string, setStateValue: Setter }} addressBar
 */
export function acknowledge({ heard, path }, { key, setStateValue }) {
  const numbers = new Set(heard);
  queue.waiting = queue.waiting.filter(({ event }) => !numbers.has(event.number));
  queue.path = path;
  const isLeft = (/** @type {Waiting} */ each) => each.path && each.path !== path;
  queue.waiting = queue.waiting.filter((each) => !isLeft(each) || !OF_THEIR_PAGE.has(each.event.name));
  const left = queue.waiting.filter(isLeft);
  for (const each of left) Object.assign(each, { place: key, path });
  const places = new Set(queue.waiting.map(({ place }) => place));
  for (const place of queue.setters.keys()) if (!places.has(place)) queue.setters.delete(place);
  if (!left.length) return;
  queue.setters.set(key, setStateValue);
  send(key);
}

/** While the page is being left, an event would bring it back. @param {string} place */
function send(place) {
  if (!queue.session) return; // the server hasn't said yet who hears it
  if (pageChange().isUnderWay(performance.now())) {
    setTimeout(() => send(place), LEAVING_MS);
    return;
  }
  const events = queue.waiting.filter((each) => each.place === place).map(({ event }) => event);
  if (!events.length) return;
  queue.setters.get(place)?.(EVENTS, { session: queue.session, events });
  isBeingSent = true;
  setTimeout(() => (isBeingSent = false), 0); // after Streamlit's own
}

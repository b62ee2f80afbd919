// Writes the view into the address bar without a new history entry, and tells the server what it doesn't know of the
// tab.
import { replaceAddress } from "../../../../transformer/frontend/page/page_state.js";
import { viewState } from "../../../../transformer/frontend/view_state.js";
import { pageChange } from "../../../../transformer/frontend/page_change.js";
import { pageLink } from "../../../../transformer/frontend/page_link.js";
import { acknowledge } from "../event_queue.js";
import { embedParameters, lastAddress, sameParameters, storeOverflow, unknownToSession } from "./stored_address.js";

const trimmed = (path) => path.replace(/\/+$/, "");

export function mountAddressBar(component) {
  const { data, setTriggerValue } = component;
  const last = lastAddress();
  if (data.time >= last.time) acknowledge(data, component);
  if (data.time <= last.time) return; // called again: the theme changed, or an earlier page was drawn late
  last.time = data.time;
  const unknown = data.is_new_session && unknownToSession();
  if (unknown && (!sameParameters(unknown.query, data.query) || Object.keys(unknown.overflow).length || differ(unknown.selection, data.known_selection))) {
    setTriggerValue("restored", { query: unknown.query, others: { ...unknown.selection, ...unknown.overflow } });
    return;
  }
  // After Back, the address bar is already that of the earlier page: it must not be overwritten with the later page's query.
  if (trimmed(location.pathname) !== trimmed(data.path)) return;
  pageChange().arrived(data.path);
  last.query = data.query;
  storeOverflow(data.query, data.overflow);
  viewState().set(data.selection_changes);
  replaceAddress(viewState().merged([data.query, embedParameters()].filter(Boolean).join("&")));
  if (data.next_page) {
    pageLink(data.next_page)?.click();
    return;
  }
  const selection = viewState().all();
  // The server may read a selection differently (an invalid value becomes the default); the same selection is sent only once.
  const isSent = last.sent && !differ(selection, last.sent);
  last.sent = null;
  if (!data.requests_selection || isSent || !differ(selection, data.known_selection)) return;
  if (pageChange().isUnderWay(performance.now())) return; // the next page asks itself
  last.sent = selection;
  setTriggerValue("selection", selection);
}

const differ = (one, other) => !sameParameters(new URLSearchParams(one), new URLSearchParams(other));

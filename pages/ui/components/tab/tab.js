// Writes the view into the address bar, over what is there, so that going back leaves a page in one step; keeps what the bar has no
// room for; and tells the server what it doesn't know of the tab, where it has to.
import { viewState, putIntoBar } from "../../../../transformer/frontend/view_state.js";
import { pageLink } from "../../../../transformer/frontend/page_link.js";
import { keepLeftOut, lastAddress, ofTheFrame, sameParameters, unknownToSession } from "./last_address.js";

const trimmed = (path) => path.replace(/\/+$/, "");

export default function ({ data, setTriggerValue }) {
  const last = lastAddress();
  if (data.at <= last.at) return; // called again, by a change of theme or a page that was drawn before
  last.at = data.at;
  const unknown = data.begins && unknownToSession();
  if (unknown && (!sameParameters(unknown.query, data.query) || Object.keys(unknown.kept).length || isOther(unknown.looked, data.knows))) {
    setTriggerValue("before", { query: unknown.query, others: { ...unknown.looked, ...unknown.kept } });
    return;
  }
  // Going back, the bar is ahead of the page: what the page before says would be taken for what is to come back.
  if (trimmed(location.pathname) !== trimmed(data.path)) return;
  last.query = data.query;
  keepLeftOut(data.query, data.kept);
  viewState().set(data.told);
  putIntoBar(viewState().merged([data.query, ofTheFrame()].filter(Boolean).join("&")));
  if (data.leave) {
    pageLink(data.leave)?.click();
    return;
  }
  const held = viewState().all();
  // What the server can't read as it is held, such as a link's words in another order, it knows otherwise ever after: said once, it is
  // not said again in answer to that.
  const isSaid = last.said && !isOther(held, last.said);
  last.said = null;
  if (!data.wants || isSaid || !isOther(held, data.knows)) return;
  last.said = held;
  setTriggerValue("held", held);
}

const isOther = (one, other) => !sameParameters(new URLSearchParams(one), new URLSearchParams(other));

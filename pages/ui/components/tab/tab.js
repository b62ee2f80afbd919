// Writes the view into the address bar, over what is there, so that going back leaves a page in one step; keeps what the bar has no
// room for; and tells a page that frames the app, as Streamlit does for what it writes itself.
import { sameParameters, keepLeftOut, lastAddress, otherParameters, unknownToSession } from "./last.js";

const trimmed = (path) => path.replace(/\/+$/, "");

export default function ({ data, setTriggerValue }) {
  const last = lastAddress();
  if (data.at <= last.at) return; // called again, by a change of theme or a page that was drawn before
  Object.assign(last, { at: data.at, looked: data.looked });
  const unknown = data.begins && unknownToSession();
  if (unknown && (!sameParameters(unknown.query, data.query) || Object.keys(unknown.kept).length)) {
    setTriggerValue("before", unknown);
    return;
  }
  // Going back, the bar is ahead of the page: what the page before says would be taken for what is to come back.
  if (trimmed(location.pathname) !== trimmed(data.path)) return;
  last.query = data.query;
  keepLeftOut(data.query, data.kept);
  const search = `?${[data.query, new URLSearchParams(otherParameters()).toString()].filter(Boolean).join("&")}`;
  if (location.search === search) return;
  try {
    history.replaceState(history.state, "", `${location.pathname}${search}${location.hash}`);
  } catch {
    return; // Browsers allow so many changes in half a minute and no more; a later one brings the bar up to date.
  }
  parent.postMessage({ stCommVersion: 1, type: "SET_QUERY_PARAM", queryParams: search }, "*");
}

// Writes what is computed from into the address bar, beside what is looked at, so that going back leaves a page in one step; keeps
// what the bar has no room for; and tells the server what it can't know.
import { looked, NAMES, putIntoBar } from "../../../../transformer/frontend/looked.js";
import { isArrival, keepLeftOut, lastAddress, sameParameters, unknownToSession } from "./last.js";

const trimmed = (path) => path.replace(/\/+$/, "");

export default function ({ data, setTriggerValue }) {
  const last = lastAddress();
  if (data.run <= last.run) return; // called again, by a change of theme or a page that was drawn before
  last.run = data.run;
  const unknown = data.begins && unknownToSession();
  const shown = new URLSearchParams([...new URLSearchParams(data.query), ...Object.entries(data.shown)]).toString();
  if (unknown && (!sameParameters(unknown.query, shown) || Object.keys(unknown.kept).length)) {
    setTriggerValue("before", unknown);
    return;
  }
  // Going back, the bar is ahead of the page: what the page before says would be taken for what is to come back.
  if (trimmed(location.pathname) !== trimmed(data.path)) return;
  if (data.at > last.at) write(data, last);
  // Streamlit tells the server the address that a tab was opened with, whatever is in the bar since.
  const values = Object.fromEntries(looked().values);
  const isStale = [...NAMES].some((name) => (values[name] ?? null) !== (data.shown[name] ?? null));
  if (isStale && isArrival(data.seen)) setTriggerValue("look", values);
}

function write(data, last) {
  Object.assign(last, { at: data.at, query: data.query });
  keepLeftOut(data.query, data.kept);
  looked().set(data.told);
  const embedding = [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("embed"));
  putIntoBar(looked().merged([data.query, new URLSearchParams(embedding).toString()].filter(Boolean).join("&")));
}

// Writes the page's parameters over those in the address bar, so that going back leaves the page in one step.
import { looked, putIntoBar } from "../../../../transformer/frontend/looked.js";
import { lastAddress } from "./last.js";

const trimmed = (path) => path.replace(/\/+$/, "");

export default function ({ data, setTriggerValue }) {
  const last = lastAddress();
  if (data.at <= last.at) return; // called again, by a change of theme or a page that was drawn before
  last.at = data.at;
  if (data.begins && last.query && last.query !== data.query) {
    setTriggerValue("before", looked().merged(last.query));
    return;
  }
  // Going back, the bar is ahead of the page: what the page before says would be taken for what is to come back.
  if (trimmed(location.pathname) !== trimmed(data.path)) return;
  last.query = data.query;
  looked().set(data.told);
  const embedding = [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith("embed"));
  const search = [data.query, new URLSearchParams(embedding).toString()].filter(Boolean).join("&");
  putIntoBar(looked().merged(search));
}

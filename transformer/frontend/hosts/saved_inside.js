// A saved page that computes a whole pass.
import { InsideView } from "../inside/view.js";
import { startSavedPage } from "./saved_page.js";

export function showInside() {
  startSavedPage({ Inside: InsideView });
}

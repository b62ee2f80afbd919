// A saved page that writes, or fills masks.
import { FillingView } from "../filling/view.js";
import { GenerationView } from "../generation/view.js";
import { startSavedPage } from "./saved_page.js";

export function showGeneration() {
  startSavedPage({ Generate: GenerationView, Filling: FillingView });
}

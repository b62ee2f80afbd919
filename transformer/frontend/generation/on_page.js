// Shows the instrument as a component of the app.
import { onAppPage } from "../browser_first.js";
import { GenerationView } from "./view.js";

export default function (component) {
  onAppPage(component, (root, host) => new GenerationView(root, host));
}

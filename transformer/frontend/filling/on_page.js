// Shows the instrument as a component of the app.
import { onAppPage } from "../browser_first.js";
import { FillingView } from "./view.js";

export default function (component) {
  onAppPage(component, (root, host) => new FillingView(root, host));
}

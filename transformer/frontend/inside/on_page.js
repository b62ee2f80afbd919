// Shows the instrument as a component of the app.
import { onPage } from "../on_page.js";
import { InsideView } from "./view.js";

export default function (component) {
  if (component.data) onPage(component, (root, host) => new InsideView(root, host));
}

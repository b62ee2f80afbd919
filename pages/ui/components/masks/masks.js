// Shows masks side by side as a component of the app.
import { withView } from "../../../../transformer/frontend/dom.js";
import { Masks } from "../../../../transformer/frontend/masks/masks.js";

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountMasks({ data, parentElement }) {
  if (data) withView(parentElement, (parts) => new Masks(parts), (view) => view.update(data));
}

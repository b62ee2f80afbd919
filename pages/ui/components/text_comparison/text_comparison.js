// Shows texts side by side as a component of the app.
import { withView } from "../../../../transformer/frontend/dom.js";
import { showTexts } from "../../../../transformer/frontend/what_if/text_comparison.js";

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountTextComparison({ data, parentElement }) {
  if (data) withView(parentElement, (parts) => ({ parts }), ({ parts }) => showTexts(parts.root, data.versions));
}

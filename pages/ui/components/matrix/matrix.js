// Shows one matrix as a component of the app.
import { withView } from "../../../../transformer/frontend/dom.js";
import { Matrix } from "../../../../transformer/frontend/matrix/matrix.js";
import { readRecording } from "../../../../transformer/frontend/recording.js";

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountMatrix({ data, parentElement }) {
  if (data) withView(parentElement, (parts) => new Matrix(parts), (view) => view.update(readRecording(data), () => {}));
}

// Streamlit's side of the page Attention's instrument: its view.
import { AttentionInstrument } from "../../../../transformer/frontend/attention/instrument.js";
import { withView } from "../../../../transformer/frontend/dom.js";
import { FedView } from "../fed_view.js";

const make = (root, host) => new AttentionInstrument(root, host);

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new FedView(parts, make, "Inside"), (view) => view.update(data));
}

// A shell with a prompt and a layer.
import { Exchange } from "../../../pages/ui/host/exchange.js";
import { pageState } from "../../../transformer/frontend/page/page_state.js";

const state = pageState();
const FIELDS = ["prompt", "layer"];
let root;
const exchange = new Exchange(state, { stale: (isStale) => (part("stale").textContent = isStale ? "out of date" : "") });

const part = (name) => root.querySelector(`[data-part=${name}]`);

function show() {
  for (const name of FIELDS) if (part(name) !== root.getRootNode().activeElement) part(name).value = state.get(name) ?? "";
}

export default function mount({ data, parentElement, setStateValue }) {
  if (root !== parentElement) {
    root = parentElement;
    for (const name of FIELDS) part(name).addEventListener("change", ({ target }) => state.set({ [name]: target.value || null }));
    state.follow(show);
  }
  exchange.draw(data, (message) => setStateValue("page_state", message));
  show();
}

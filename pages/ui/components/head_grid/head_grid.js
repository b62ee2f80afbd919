// Draws the attention of many heads as small heatmaps. `data` is a recording: the tensor `overview` (layer, head,
// query, key).
import { withView } from "../../../../transformer/frontend/dom.js";
import { HeadOverview } from "../../../../transformer/frontend/head_overview.js";
import { readRecording } from "../../../../transformer/frontend/recording.js";

class View {
  constructor(parts) {
    this.parts = parts;
    this.overview = new HeadOverview(parts.root, () => {}); // a head that is picked is marked, and that is all
  }

  update(bytes) {
    const started = performance.now();
    const { shape, data: cells } = readRecording(bytes).tensors.overview;
    const [layers, heads, queries, keys] = shape;
    this.overview.show({ layers: Array.from({ length: layers }, (_, layer) => layer), heads, queries, keys, cells });
    this.parts.root.dataset.updateMs = (performance.now() - started).toFixed(2);
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountHeadGrid({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

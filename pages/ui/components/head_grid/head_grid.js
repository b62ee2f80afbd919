// Small heatmaps of many heads, to pick one from. `data` is a recording: the tensor `overview` (layer, head, query, key),
// and in its metadata what the layers are called and which head is selected. Python answers a selection with new data.
import { withView } from "../../../../transformer/instrument/dom.js";
import { OverviewGrid } from "../../../../transformer/instrument/overview.js";
import { readRecording } from "../../../../transformer/instrument/recording.js";

const ECHO_MS = 1500; // how long a selection made here stands before Python has answered it

class View {
  constructor(parts) {
    this.parts = parts;
    this.overview = new OverviewGrid(parts.root, (layer, head) => {
      this.wanted = { head: [layer, head], until: performance.now() + ECHO_MS };
      this.send("head", [layer, head]);
    });
  }

  update(bytes) {
    const started = performance.now();
    const { metadata, tensors } = readRecording(bytes);
    const { layers, selected } = metadata.grid;
    const { shape, data: cells } = tensors.overview;
    const [, heads, queries, keys] = shape;
    const isNew = this.overview.show({ layers, heads, queries, keys, cells });
    const isAnswered = this.wanted?.head.join() === selected.join() || started > this.wanted?.until;
    if (isNew || isAnswered) this.wanted = null;
    this.overview.select(...(this.wanted?.head ?? selected));
    this.parts.root.dataset.updateMs = (performance.now() - started).toFixed(2);
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => {
    view.send = setTriggerValue;
    view.update(data);
  });
}

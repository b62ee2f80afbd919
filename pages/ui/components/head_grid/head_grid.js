// Small heatmaps of many heads, to pick one from. `data` is bytes: the length of a JSON header as four bytes, the
// header, then one byte a cell, head after head. 0 to 254 is a weight from 0 to 1, 255 a cell that is hidden.
// The buttons are made once and drawn over when new data come.

const HIDDEN = 255;
const ECHO_MS = 1500; // how long a selection made here stands before Python has answered it

class View {
  constructor(parts) {
    this.parts = parts;
    this.buttons = [];
    this.focusable = 0;
    const { grid } = this.parts;
    const placeOf = (event) => this.buttons.findIndex(({ button }) => button.contains(event.target));
    grid.addEventListener("click", (event) => {
      const place = placeOf(event);
      if (place >= 0) this.select(place);
    });
    grid.addEventListener("keydown", (event) => this.onKey(event));
    for (const kind of ["pointerover", "focusin"]) grid.addEventListener(kind, (event) => this.readOut(placeOf(event)));
    for (const kind of ["pointerleave", "focusout"]) grid.addEventListener(kind, () => this.readOut(-1));
  }

  onKey(event) {
    const { heads } = this.data;
    const last = this.buttons.length - 1;
    const here = this.focusable;
    const line = here - (here % heads);
    // Up and down only where heads stand below one another: a single layer is one line, however it wraps.
    const target = {
      ArrowLeft: here - 1, ArrowRight: here + 1, ArrowUp: here - heads, ArrowDown: here + heads,
      Home: line, End: line + heads - 1,
    }[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (target < 0 || target > last) return;
    this.makeFocusable(target);
    this.buttons[target].button.focus();
  }

  makeFocusable(place) {
    this.focusable = place;
    this.buttons.forEach(({ button }, at) => { button.tabIndex = at === place ? 0 : -1; });
  }

  select(place) {
    this.wanted = { place, until: performance.now() + ECHO_MS };
    this.makeFocusable(place);
    this.showSelection();
    this.send("head", [this.data.layers[Math.floor(place / this.data.heads)], place % this.data.heads]);
  }

  name(place) {
    return `Layer ${this.data.layers[Math.floor(place / this.data.heads)]}, head ${place % this.data.heads}`;
  }

  readOut(place) {
    const at = place >= 0 ? place : this.selected;
    put(this.parts.readout, at < 0 ? "" : this.name(at) + (at === this.selected ? ", selected" : ""));
  }

  update(bytes) {
    const started = performance.now();
    const { header, rest } = decode(bytes);
    this.data = { ...header, cells: rest };
    const { layers, heads, stops } = this.data;
    this.parts.ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    this.layOut(layers, heads);
    this.draw();
    const at = layers.indexOf(this.data.selected[0]);
    this.chosen = at < 0 || this.data.selected[1] >= heads ? -1 : at * heads + this.data.selected[1];
    if (this.wanted && (this.chosen === this.wanted.place || started > this.wanted.until)) this.wanted = null;
    this.showSelection();
    if (!this.buttons[this.focusable]?.button.matches(":focus")) this.makeFocusable(Math.max(this.selected, 0));
    this.parts.root.dataset.updateMs = (performance.now() - started).toFixed(2);
  }

  // Only a change of the number of layers or heads, or of the layers' names, makes or moves a node.
  layOut(layers, heads) {
    const shape = `${layers.join()}|${heads}`;
    if (this.shape === shape) return;
    this.shape = shape;
    this.wanted = null;
    const { grid } = this.parts;
    const table = layers.length > 1;
    grid.className = table ? "grid table" : "grid row";
    grid.style.setProperty("--heads", heads);
    while (this.buttons.length < layers.length * heads) this.buttons.push(this.makeButton());
    this.buttons.length = layers.length * heads;
    const heading = (kind, text) => {
      const made = node("div", `heading ${kind}`);
      put(made, text);
      made.setAttribute("aria-hidden", "true"); // every button has the same words in its label
      return made;
    };
    const children = table ? [heading("corner", ""), ...Array.from({ length: heads }, (_, h) => heading("head", `head ${h}`))] : [];
    this.buttons.forEach(({ button, name }, place) => {
      if (table && place % heads === 0) children.push(heading("layer", `layer ${layers[place / heads]}`));
      button.setAttribute("aria-label", this.name(place));
      put(name, `head ${place % heads}`);
      children.push(button);
    });
    grid.replaceChildren(...children);
    this.focusable = Math.min(this.focusable, this.buttons.length - 1);
  }

  makeButton() {
    const button = node("button", "");
    button.type = "button";
    button.dataset.testid = "head-grid-head";
    return { button, canvas: node("canvas", "", button), name: node("span", "name", button) };
  }

  draw() {
    const { queries, keys, cells, stops } = this.data;
    // One little-endian RGBA word for each of the 256 values; hidden stays 0, fully transparent.
    const words = new Uint32Array(256);
    for (let value = 0; value < HIDDEN; value++) {
      const hex = stops[Math.round((value / 254) * (stops.length - 1))];
      const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
      words[value] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    }
    this.buttons.forEach(({ canvas }, place) => {
      if (canvas.width !== keys) canvas.width = keys;
      if (canvas.height !== queries) canvas.height = queries;
      canvas.style.aspectRatio = `${keys} / ${queries}`; // cross-attention isn't square
      const image = new ImageData(keys, queries);
      const pixels = new Uint32Array(image.data.buffer);
      const start = place * queries * keys;
      for (let at = 0; at < pixels.length; at++) pixels[at] = words[cells[start + at]];
      canvas.getContext("2d").putImageData(image, 0, 0);
    });
  }

  showSelection() {
    this.selected = this.wanted?.place ?? this.chosen;
    this.buttons.forEach(({ button }, place) => {
      attribute(button, "aria-pressed", String(place === this.selected));
    });
    this.readOut(-1);
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

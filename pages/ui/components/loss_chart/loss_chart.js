// Draws a chart of losses by step. New data is drawn into the same nodes, so that it doesn't flicker. Whatever comes
// from `data` reaches the page through textContent and attributes, never as HTML.
import { attribute, node, put, withView } from "../../../../transformer/frontend/dom.js";
import { pngButton } from "../../../../transformer/frontend/save.js";
import { drawSaved } from "./svg_export.js";

const SVG = "http://www.w3.org/2000/svg";
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 12, 10, 34]; // pixels around the plot
const REFERENCES = ["reference", "reference second"]; // the looks of the lines to compare with

function make(tag, className, parent) {
  const made = document.createElementNS(SVG, tag);
  made.setAttribute("class", className);
  parent.append(made);
  return made;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

/** About `count` round numbers from `low` to `high`. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, at) => (first + at) * step);
}

class Chart {
  constructor(parts) {
    this.parts = parts;
    const { svg, legend, tools } = this.parts;
    this.back = make("g", "back", svg);
    this.lines = { train: make("path", "train", svg), validation: make("path", "validation", svg) };
    this.dots = make("g", "dots", svg);
    this.here = make("line", "here", svg);
    pngButton(tools, () => "loss", () => drawSaved(svg, legend));
    new ResizeObserver(() => this.data && this.draw()).observe(svg);
  }

  update(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    const { svg } = this.parts;
    const { width, height } = svg.getBoundingClientRect();
    if (!width) return;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const { train, validation, references, steps, here } = this.data;
    const losses = [...train, ...validation].map(([, loss]) => loss).concat(references.map(({ loss }) => loss));
    const high = losses.length ? Math.max(...losses) * 1.05 : 1;
    const low = 0;
    this.x = (step) => LEFT + (step / steps) * (width - LEFT - RIGHT);
    this.y = (loss) => TOP + ((high - loss) / (high - low)) * (height - TOP - BOTTOM);

    this.drawBack(width, height, low, high);
    for (const [name, points] of [["train", train], ["validation", validation]]) {
      this.lines[name].setAttribute("d", points.map(([step, loss], at) => `${at ? "L" : "M"}${this.x(step).toFixed(1)} ${this.y(loss).toFixed(1)}`).join(""));
    }
    this.dots.replaceChildren();
    for (const [step, loss] of validation) set(make("circle", "dot", this.dots), { cx: this.x(step), cy: this.y(loss), r: 3 });
    this.here.style.display = here == null ? "none" : "";
    if (here != null) set(this.here, { x1: this.x(here), x2: this.x(here), y1: TOP, y2: height - BOTTOM });
    svg.setAttribute("aria-label", this.data.summary);
    this.drawLegend();
  }

  drawBack(width, height, low, high) {
    this.back.replaceChildren();
    const text = (x, y, anchor, content) => {
      const label = make("text", "axis", this.back);
      set(label, { x, y, "text-anchor": anchor });
      label.textContent = content;
    };
    for (const loss of ticks(low, high, 5)) {
      set(make("line", "grid", this.back), { x1: LEFT, x2: width - RIGHT, y1: this.y(loss), y2: this.y(loss) });
      text(LEFT - 6, this.y(loss) + 4, "end", String(Number(loss.toFixed(3))));
    }
    for (const step of ticks(0, this.data.steps, width < 420 ? 3 : 6)) text(this.x(step), height - BOTTOM + 16, "middle", step.toLocaleString("en"));
    text((LEFT + width - RIGHT) / 2, height - 2, "middle", "step");
    text(4, TOP - 1, "start", "nats");
    for (const [at, { loss }] of this.data.references.entries()) {
      set(make("line", REFERENCES[at], this.back), { x1: LEFT, x2: width - RIGHT, y1: this.y(loss), y2: this.y(loss) });
    }
  }

  drawLegend() {
    const { legend } = this.parts;
    const newest = (points) => (points.length ? ` ${points.at(-1)[1].toPrecision(3)}` : "");
    const { train, validation, references } = this.data;
    const entries = [["train", `training loss${newest(train)}`]];
    if (validation.length) entries.push(["validation", `validation loss${newest(validation)}`]);
    for (const [at, { label, loss }] of references.entries()) entries.push([REFERENCES[at], `${label} = ${loss.toPrecision(3)}`]);
    while (legend.children.length > entries.length) legend.lastChild.remove();
    entries.forEach(([name, words], at) => {
      const entry = legend.children[at] ?? node("span", "", legend);
      attribute(entry, "class", name);
      put(entry, words);
    });
  }
}

export function mountLossChart({ data, parentElement }) {
  withView(parentElement, (parts) => new Chart(parts), (chart) => chart.update(data));
}

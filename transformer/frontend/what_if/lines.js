// Draws lines over the layers of a model: probabilities by depth, told apart by colour, dash and symbol.

import { attribute, node, put, untranslated } from "../dom.js";
import { percent } from "../number_format.js";

const [WIDE, HIGH] = [640, 240]; // of the drawing, which grows with its page
const EDGE = { left: 46, right: 12, top: 10, bottom: 40 };
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
const DASHES = ["", "8 4", "2 4", "8 4 2 4"];
const RADIUS = 3.5;
const SVG = "http://www.w3.org/2000/svg";

/** @typedef {{ name: string, values: number[], says: string[] }} Line says: what is likeliest at each point */

/** @param {HTMLElement} parent @param {Line[]} lines from 0 to 1, by depth @param {{ name: string, across: string, down: string }} titles */
export function showLines(parent, lines, { name, across, down }) {
  const depths = Math.max(...lines.map(({ values }) => values.length));
  const x = (depth) => EDGE.left + ((depth + 0.3) * (WIDE - EDGE.left - EDGE.right)) / (depths - 0.4);
  const y = (value) => HIGH - EDGE.bottom - value * (HIGH - EDGE.top - EDGE.bottom);
  const picture = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${name}: ${lines.map(({ name: line, values }) => `${line} ${values.map(percent).join(", ")}`).join("; ")}` }, null);
  picture.classList.add("lines");
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    drawn("line", { class: "grid", x1: EDGE.left, x2: WIDE - EDGE.right, y1: y(value), y2: y(value) }, picture);
    drawn("text", { x: EDGE.left - 6, y: y(value), "text-anchor": "end", "dominant-baseline": "middle" }, picture).textContent = String(value);
  }
  const step = Math.ceil(depths / 16);
  for (let depth = 0; depth < depths; depth += step) drawn("text", { x: x(depth), y: HIGH - EDGE.bottom + 16, "text-anchor": "middle" }, picture).textContent = depth ? String(depth - 1) : "embedding";
  drawn("text", { x: (WIDE + EDGE.left) / 2, y: HIGH - 6, "text-anchor": "middle" }, picture).textContent = across;
  drawn("text", { transform: `translate(12 ${(HIGH - EDGE.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, picture).textContent = down;
  const legend = node("ul", "lines-legend", null);
  lines.forEach(({ name: title, values, says }, at) => {
    const colour = COLOURS[at % COLOURS.length];
    drawn("polyline", { points: values.map((value, depth) => `${x(depth)},${y(value)}`).join(" "), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": DASHES[at % DASHES.length] }, picture);
    values.forEach((value, depth) => {
      const point = drawn("circle", { cx: x(depth), cy: y(value), r: RADIUS, fill: colour }, picture);
      drawn("title", {}, point).textContent = `${title}, after ${depth ? `layer ${depth - 1}` : "the embedding"}: probability ${percent(value)}; likeliest there: ${says[depth]}`;
    });
    const item = node("li", "", legend);
    const sample = drawn("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" }, item);
    drawn("line", { x1: 0, x2: 24, y1: 4, y2: 4, stroke: colour, "stroke-width": 2, "stroke-dasharray": DASHES[at % DASHES.length] }, sample);
    put(untranslated(node("span", "", item)), title);
  });
  parent.replaceChildren(legend, picture);
}

/** @param {string} tag @param {Record<string, string | number>} attributes @param {Element | null} parent */
function drawn(tag, attributes, parent) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) attribute(made, name, String(value));
  parent?.append(made);
  return made;
}

// Exports the chart of losses as an SVG file with its colours and fonts.
import { node } from "../../../../transformer/frontend/dom.js";

const SCALE = 2; // pixels of the picture for one of the page
const MARGIN = 12;
const LINE = 20; // of the legend below the chart
const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "font-family"];

/** A promise of a canvas with an <svg> on the page, and the entries of its legend, a line each, below it. */
export async function drawSaved(svg, legend) {
  const { width, height } = svg.getBoundingClientRect();
  const entries = [...legend.children];
  const canvas = node("canvas", "");
  canvas.width = SCALE * (width + 2 * MARGIN);
  canvas.height = SCALE * (height + 2 * MARGIN + entries.length * LINE);
  const context = canvas.getContext("2d");
  const style = getComputedStyle(svg);
  context.fillStyle = style.getPropertyValue("--paper");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(SCALE, SCALE);
  context.drawImage(await imageOf(svg, width, height), MARGIN, MARGIN, width, height);
  context.font = `13px ${style.fontFamily}`;
  entries.forEach((entry, row) => {
    const y = MARGIN + height + (row + 0.5) * LINE;
    const { borderTopColor, borderTopStyle } = getComputedStyle(entry, "::before");
    context.strokeStyle = borderTopColor;
    context.lineWidth = 2;
    context.setLineDash({ dashed: [7, 3], dotted: [2, 4] }[borderTopStyle] ?? []);
    context.beginPath();
    context.moveTo(MARGIN, y);
    context.lineTo(MARGIN + 24, y);
    context.stroke();
    context.fillStyle = style.color;
    context.fillText(entry.textContent, MARGIN + 32, y + 4);
  });
  return canvas;
}

async function imageOf(svg, width, height) {
  const copy = svg.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((shown, at) => {
    const style = getComputedStyle(shown);
    for (const name of STYLED) copies[at].style.setProperty(name, style.getPropertyValue(name));
  });
  copy.setAttribute("width", SCALE * width);
  copy.setAttribute("height", SCALE * height);
  const image = node("img", "");
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  return image;
}

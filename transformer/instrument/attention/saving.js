// The picture and the numbers of the head that is looked at, as files.

import { node } from "../dom.js";
import { csv, png, saveBlob } from "../save.js";

const GAP = 16; // pixels
const LINE = 22;

function nameOf({ pass, chosen }) {
  return `${pass.title}-${pass.kind === "self" ? "" : `${pass.kind}-`}layer${chosen.layer}-head${chosen.head}`;
}

/** Save the panels as a PNG file, with their titles, on the page's own colours. */
export async function savePicture(instrument) {
  const { parts, panels, chosen } = instrument;
  const pictures = panels.pictures;
  const ratio = devicePixelRatio || 1;
  const columns = Math.min(2, pictures.length);
  const width = Math.max(...pictures.map(({ canvas }) => canvas.width)) + GAP * ratio;
  const height = Math.max(...pictures.map(({ canvas }) => canvas.height)) + (GAP + LINE) * ratio;
  const whole = node("canvas", "");
  whole.width = columns * width + GAP * ratio;
  whole.height = Math.ceil(pictures.length / columns) * height + (GAP + LINE) * ratio;
  const context = whole.getContext("2d");
  const style = getComputedStyle(parts.root);
  context.fillStyle = style.getPropertyValue("--paper");
  context.fillRect(0, 0, whole.width, whole.height);
  context.fillStyle = style.color;
  context.font = `${14 * ratio}px ${style.fontFamily}`;
  context.fillText(`Layer ${chosen.layer}, head ${chosen.head}`, GAP * ratio, LINE * ratio);
  pictures.forEach(({ title, canvas }, at) => {
    const left = GAP * ratio + (at % columns) * width;
    const top = (GAP + LINE) * ratio + Math.floor(at / columns) * height;
    context.fillText(title, left, top + 14 * ratio);
    context.drawImage(canvas, left, top + LINE * ratio);
  });
  saveBlob(`${nameOf(instrument)}.png`, await png(whole));
}

/** Save the model's own numbers of the head, a row a cell, as a CSV file. */
export function saveNumbers(instrument) {
  const { pass, chosen } = instrument;
  const steps = pass.steps(chosen.layer, chosen.head);
  if (!steps) return;
  const scores = pass.uniform ? [] : [["q·k", steps.raw], ["q·k/√d_head", steps.scaled], ["masked score", steps.masked]];
  const columns = ["query position", "query", "key position", "key", "visible", ...scores.map(([name]) => name), "weight"];
  const rows = Array.from(steps.weights, (weight, at) => {
    const [query, key] = [Math.floor(at / pass.keys), at % pass.keys];
    return [
      pass.offsets.queries + query, pass.labels.queries[query], pass.offsets.keys + key, pass.labels.keys[key],
      pass.visible(query, key) ? "True" : "False", ...scores.map(([, values]) => values[at]), weight,
    ];
  });
  saveBlob(`${nameOf(instrument)}.csv`, new Blob([csv(columns, rows)], { type: "text/csv" }));
}

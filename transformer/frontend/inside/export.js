// Exports the picture of a pass as a PNG: its canvases and the HTML labels above them.

import { node } from "../dom.js";
import { cut } from "../axis_labels.js";
import { composed, png, saveBlob } from "../save.js";

const LONGEST = 80; // characters of a text

/** Save what an instrument's stage shows. */
export async function savePicture({ pass, parts, chosen, structure }) {
  const ratio = devicePixelRatio || 1;
  const canvases = [...parts.stage.querySelectorAll(":scope > canvas")];
  const drawn = node("canvas", "");
  drawn.width = canvases[0].width;
  drawn.height = canvases[0].height;
  const context = drawn.getContext("2d");
  context.fillStyle = getComputedStyle(parts.root).getPropertyValue("--paper");
  context.fillRect(0, 0, drawn.width, drawn.height);
  for (const canvas of canvases) context.drawImage(canvas, 0, 0);
  context.scale(ratio, ratio);
  const origin = canvases[0].getBoundingClientRect();
  for (const element of parts.stage.querySelectorAll(".names *")) write(context, element, origin);
  const title = [pass.title, chosen.open].filter(Boolean).join(": ");
  const read = structure.stacks.map(({ tokens }) => `“${cut(pass.labels[tokens].join(""), LONGEST)}”`).join(" → ");
  saveBlob(`${[pass.title, chosen.open || "inside"].join("-")}.png`, await png(composed(parts.root, title, [{ title: read, canvas: drawn }])));
}

/** Draw an element's frame, if it has one, and its own text, where it stands on the page. */
function write(context, element, origin) {
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (!box.width || style.visibility === "hidden") return;
  context.globalAlpha = opacityOf(element);
  if (parseFloat(style.borderTopWidth)) {
    context.beginPath();
    const frame = [box.left - origin.left, box.top - origin.top, box.width, box.height];
    if (context.roundRect) context.roundRect(...frame, Math.min(parseFloat(style.borderTopLeftRadius), box.height / 2));
    else context.rect(...frame);
    context.fillStyle = style.backgroundColor;
    context.fill();
    context.strokeStyle = style.borderTopColor;
    context.lineWidth = 1;
    context.stroke();
  }
  const text = [...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data).join("");
  if (!text.trim()) return;
  const range = document.createRange();
  range.selectNodeContents(element);
  const { left, top, width, height } = range.getBoundingClientRect();
  context.fillStyle = style.color;
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.save();
  context.translate(left + width / 2 - origin.left, top + height / 2 - origin.top);
  const isTurned = style.writingMode.startsWith("vertical");
  if (isTurned) context.rotate(-Math.PI / 2);
  context.fillText(text, 0, 0, Math.max(1, isTurned ? height : width));
  context.restore();
}

function opacityOf(element) {
  let opacity = 1;
  for (let ancestor = element; ancestor && !ancestor.classList.contains("names"); ancestor = ancestor.parentElement) opacity *= Number(getComputedStyle(ancestor).opacity);
  return opacity;
}

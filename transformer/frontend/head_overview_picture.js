// Saves the overview of heads as one picture.
import { node } from "./dom.js";

const SIDE = 160; // pixels of the longer side of a heatmap
const LINE = 22;
const GAP = 14;
const COLUMNS = 6; // of cards that stand in no table

/** A canvas with what an HeadOverview shows: its heatmaps, each under its name, on the page's own colours. */
export function drawOverview({ root, shown, heads, isTable, queries, keys }) {
  const style = getComputedStyle(root);
  const columns = isTable ? heads : Math.min(shown.length, COLUMNS);
  const rows = Math.ceil(shown.length / columns);
  const [width, height] = [keys, queries].map((length) => Math.max(1, Math.round((SIDE * length) / Math.max(keys, queries))));
  const words = shown.some(({ caption }) => caption) ? 2 : 1; // lines above each heatmap
  const card = { width: Math.max(width, SIDE) + GAP, height: height + words * LINE + GAP };
  const canvas = node("canvas", "");
  canvas.width = columns * card.width + GAP;
  canvas.height = rows * card.height + GAP;
  const context = canvas.getContext("2d");
  context.fillStyle = style.getPropertyValue("--paper");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  context.font = `14px ${style.fontFamily}`;
  shown.forEach(({ layer, head, caption, canvas: heatmap }, index) => {
    const left = GAP + (index % columns) * card.width;
    const top = GAP + Math.floor(index / columns) * card.height;
    context.fillStyle = style.color;
    context.fillText(`layer ${layer}, head ${head}`, left, top + 15, SIDE);
    context.fillText(caption, left, top + LINE + 15, SIDE);
    context.fillStyle = getComputedStyle(heatmap).backgroundColor; // seen through hidden cells
    context.fillRect(left, top + words * LINE, width, height);
    context.drawImage(heatmap, left, top + words * LINE, width, height);
  });
  return canvas;
}

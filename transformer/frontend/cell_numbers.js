// Writes numbers over the cells of a small heatmap and crosses out hidden ones.
import { colourAt, scaleOf } from "./colours.js";
import { labelFont, scaled } from "./axis_labels.js";

const LEAST_HIGH = 16; // pixels of a cell that its number needs
const HALO = 5; // pixels around a number
const FEW = 5; // up to here whole numbers say too little
const ROOM = 6; // pixels left and right of a number together
const [LIGHT, DARK] = ["#ffffff", "#000000"];

/** Decimals with which numbers of up to `limit` show so many digits of the largest. */
export function decimalsFor(limit, digits) {
  return Math.min(Math.max(digits - 1 - Math.floor(Math.log10(limit)), 0), 5);
}

/** Black or white, whichever can be read on a colour, as bytes (WCAG 2.2, relative luminance). */
export function inkOn(colour) {
  const [red, green, blue] = colour.map((byte) => {
    const share = byte / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? DARK : LIGHT;
}

/**
 * Write each cell's number into it, as finely as all of them fit, if they do. heatmap: one of kind "scores" that has been laid
 * out, whose own values end where its colours do. numbers: flat, −∞ where there is none.
 */
export function writeNumbers(context, { data, plotArea, page }, numbers) {
  const { values, columns, limit } = data;
  if (plotArea.cellHeight < scaled(LEAST_HIGH)) return;
  context.font = labelFont();
  const digits = Math.floor((plotArea.cellWidth - ROOM) / context.measureText("0").width);
  const finer = [3, 2, 1].map((size) => decimalsFor(limit, size)).filter((decimals) => decimals > 0 || limit > FEW);
  const written = finer.map((decimals) => texts(numbers, decimals));
  const fitting = written.find((texts) => Math.max(...texts.map((text) => text.length)) <= digits);
  if (!fitting) return;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const scale = scaleOf("scores", page.isDark);
  fitting.forEach((text, at) => {
    const fraction = (values[at] / limit + 1) / 2;
    const [x, y] = middle(plotArea, Math.floor(at / columns), at % columns);
    const colour = colourAt(scale, Math.max(fraction, 0));
    context.strokeStyle = `rgb(${colour.join(" ")})`;
    context.lineWidth = HALO;
    context.lineJoin = "round";
    context.strokeText(text, x, y); // in the cell's own colour: what is drawn below leaves room for it
    context.fillStyle = inkOn(colour);
    context.fillText(text, x, y);
  });
}

/** A cross through a cell, in two strokes, so that it can be seen on any colour. */
export function crossOut(context, { plotArea }, row, column) {
  const [x, y] = middle(plotArea, row, column);
  const [wide, high] = [plotArea.cellWidth / 2 - 2, plotArea.cellHeight / 2 - 2];
  context.save();
  for (const [colour, width] of [[LIGHT, 4], [DARK, 2]]) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (const side of [-1, 1]) {
      context.moveTo(x - wide, y - side * high);
      context.lineTo(x + wide, y + side * high);
    }
    context.stroke();
  }
  context.restore();
}

function texts(values, decimals) {
  return Array.from(values, (value) => (Number.isFinite(value) ? signed(value, decimals) : ""));
}

function signed(value, decimals) {
  const text = Math.abs(value).toFixed(decimals);
  if (Number(text) === 0) return "0";
  return `${value < 0 ? "−" : "+"}${text}`;
}

function middle(plotArea, row, column) {
  return [plotArea.left + (column + 0.5) * plotArea.cellWidth, plotArea.top + (row + 0.5) * plotArea.cellHeight];
}

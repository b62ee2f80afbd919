// Chooses evenly spaced axis labels that fit without overlapping.

import { every } from "./number_format.js";

const FACE = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const USUAL = 16; // pixels of a page's type that nobody has made larger
export const LINE = 13; // pixels that one line of a label takes, in usual type
const UPRIGHT = 10; // the same, of labels of a word that are turned upright
let scale = 1;

/** How large the page's type is, as CSS says it. */
export const typeSize = () => getComputedStyle(document.documentElement).fontSize;

/** Read anew how large the page's type is, which labels drawn in pixels follow. Who has set it larger needs larger labels too. */
export function readType() {
  scale = parseFloat(typeSize()) / USUAL || 1;
}

/** So many pixels of usual type in the page's. */
export const scaled = (pixels) => pixels * scale;

/** The font of a label, of so many pixels in usual type. */
export const labelFont = (size = 11) => `${scaled(size)}px ${FACE}`;

export const LONGEST = { rows: 24, columns: 16 }; // characters of a label; a longer one is cut

/** A token's label, cut if it is longer than so many characters. */
export function cut(label, longest) {
  const signs = [...label];
  return signs.length <= longest ? label : `${signs.slice(0, longest - 1).join("")}…`;
}

/** A sentence on the tokens without a label, where every so many-th row and column has one; empty where all have. */
export function labellingNote({ rows, columns }) {
  const step = Math.max(rows, columns);
  if (step === 1) return "";
  return `${every(step, "token")} is labelled; point at or tap a cell to see both of its tokens.`;
}

/**
 * How the labels of columns are set: turned upright or not, every so many-th, and the pixels they take.
 * widths: of each label in pixels; pitch: pixels from one column to the next.
 */
export function fitColumns(widths, pitch) {
  const widest = Math.max(0, ...widths);
  const line = scaled(LINE);
  const gap = widest > line ? 4 : 0; // nothing need part single characters
  // A label may reach into the free space of a short one beside it.
  const fits = widest <= pitch && widths.every((width, at) => (width + (widths[at - 1] ?? 0)) / 2 + gap <= pitch);
  const turned = !fits && widest > line;
  const step = fits ? 1 : Math.max(1, Math.ceil((turned ? scaled(UPRIGHT) : Math.max(widest, 8)) / pitch));
  return { turned, step, height: turned ? widest + 6 : line + 2 };
}

/** Write the label of a column with its middle at x, from y on where it is turned. */
export function writeColumn(context, label, x, y, turned) {
  context.save();
  context.translate(x, y);
  if (turned) context.rotate(-Math.PI / 2);
  context.textAlign = turned ? "right" : "center";
  context.fillText(label, 0, 0);
  context.restore();
}

/** How the labels of rows are set: every so many-th, and the pixels they take. */
export function fitRows(widths, pitch) {
  return { step: Math.max(1, Math.ceil(scaled(LINE) / pitch)), width: Math.max(0, ...widths) + 6 };
}

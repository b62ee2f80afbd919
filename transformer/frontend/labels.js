// Chooses evenly spaced axis labels that fit without overlapping.

const FACE = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const USUAL = 16; // pixels of a page's type that nobody has made larger
export const LINE = 13; // pixels that one line of a label takes, in usual type
let scale = 1;

/** Read anew how large the page's type is, which labels drawn in pixels follow. Who has set it larger needs larger labels too. */
export function readType() {
  scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / USUAL || 1;
}

/** So many pixels of usual type in the page's. */
export const scaled = (pixels) => pixels * scale;

/** The font of a label, of so many pixels in usual type. */
export const labelFont = (size = 11) => `${scaled(size)}px ${FACE}`;

export const LONGEST = { rows: 24, columns: 12 }; // characters of a label; a longer one is cut

/** A token's label, cut if it is longer than so many characters. */
export function cut(label, longest) {
  const signs = [...label];
  return signs.length <= longest ? label : `${signs.slice(0, longest - 1).join("")}…`;
}

/**
 * How the labels of columns are set: turned upright or not, every so many-th, and the pixels they take.
 * widths: of each label in pixels; pitch: pixels from one column to the next.
 */
export function fitColumns(widths, pitch) {
  const widest = Math.max(0, ...widths);
  const line = scaled(LINE);
  const turned = widest + 4 > pitch && widest > line;
  const step = Math.max(1, Math.ceil((turned ? line : Math.max(widest + 3, 8)) / pitch));
  return { turned, step, height: turned ? widest + 6 : line + 2 };
}

/** How the labels of rows are set: every so many-th, and the pixels they take. */
export function fitRows(widths, pitch) {
  return { step: Math.max(1, Math.ceil(scaled(LINE) / pitch)), width: Math.max(0, ...widths) + 6 };
}

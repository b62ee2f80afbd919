// Labels of an axis: as many as fit, evenly spaced, and none touching the next.

export const LABEL_FONT = '11px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const LINE = 13; // pixels that one line of a label takes
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
  const turned = widest + 4 > pitch && widest > LINE;
  const step = Math.max(1, Math.ceil((turned ? LINE : Math.max(widest + 3, 8)) / pitch));
  return { turned, step, height: turned ? widest + 6 : LINE + 2 };
}

/** How the labels of rows are set: every so many-th, and the pixels they take. */
export function fitRows(widths, pitch) {
  return { step: Math.max(1, Math.ceil(LINE / pitch)), width: Math.max(0, ...widths) + 6 };
}

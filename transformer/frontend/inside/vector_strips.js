// Draws the rows of cells below the tokens, as images with one pixel for each cell.

import { HIDDEN, pixelsOf } from "../colours.js";
import { largestAbsolute } from "../arithmetic.js";
import { node } from "../dom.js";
import { stridesOf } from "../recording.js";

const MOST_CELLS = 48; // of a token
const SHARES = /pattern$|probabilities$|mask$/;

/** Which colour scale a tensor has: "weights" from 0 to 1, or "scores" around zero. */
export function kindOf(name) {
  return SHARES.test(name) ? "weights" : "scores";
}

/**
 * A tensor as cells of each token: { tokens, cells, bytes }. Of neighbours the one that stands out most is taken.
 * tensor: { dims, sizes, data }; head: of which, where it has heads and one is chosen.
 */
export function pooled({ dims, sizes, data }, kind, head = null) {
  const along = dims.findIndex((dim) => dim === "pos" || dim === "query");
  const at = along >= 0 ? along : dims.indexOf("key");
  const strides = stridesOf(sizes);
  const others = dims.map((dim, axis) => ({ dim, size: sizes[axis], stride: strides[axis] })).filter((_, axis) => axis !== at);
  const offsets = others.reduce((starts, { dim, size, stride }) => {
    const indices = dim === "head" && head !== null ? [Math.min(head, size - 1)] : Array.from({ length: size }, (_, index) => index);
    return starts.flatMap((start) => indices.map((index) => start + index * stride));
  }, [0]);
  const [tokens, cells] = [sizes[at], Math.min(offsets.length, MOST_CELLS)];
  const bytes = new Uint8Array(tokens * cells);
  const limit = kind === "weights" ? 1 : largestAbsolute(data) || 1;
  for (let token = 0; token < tokens; token++) {
    for (let cell = 0; cell < cells; cell++) {
      const [from, to] = [cell, cell + 1].map((edge) => Math.floor((edge * offsets.length) / cells));
      let strongest = -Infinity;
      for (let number = from; number < to; number++) {
        const value = data[token * strides[at] + offsets[number]];
        if (strongest === -Infinity || Math.abs(value) > Math.abs(strongest)) if (value !== -Infinity) strongest = value;
      }
      bytes[token * cells + cell] = strongest === -Infinity ? HIDDEN : kind === "weights" ? Math.round(254 * strongest) : Math.round(127 + (127 * strongest) / limit);
    }
  }
  return { tokens, cells, bytes };
}

/**
 * A canvas with one pixel a cell, a token a row; or, where tokens are narrower than their cells would be, a token a column
 * with its first cell below.
 */
export function imageOf({ tokens, cells, bytes }, kind, isUpright, isDark = false) {
  const canvas = node("canvas", "");
  [canvas.width, canvas.height] = isUpright ? [tokens, cells] : [cells, tokens];
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = pixelsOf(kind, isDark);
  for (let token = 0; token < tokens; token++) {
    for (let cell = 0; cell < cells; cell++) {
      const at = isUpright ? (cells - 1 - cell) * tokens + token : token * cells + cell;
      pixels[at] = colours[bytes[token * cells + cell]];
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

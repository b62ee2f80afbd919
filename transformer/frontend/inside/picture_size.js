// Computes the size of the picture in the page and the space left for labels.

import { scaled } from "../axis_labels.js";

// Pixels of the picture, of usual type; and a picture on a phone, which is no narrower for type that is larger.
const NARROW = 560;
const PHONE = 328;
const SIDES = {
  tight: { gutter: 88, margin: 46 },
  narrow: { gutter: 104, margin: 62 },
  wide: { gutter: 128, margin: 104 },
};
const TALLEST = { model: 780, tensor: 460 }; // pixels of the picture; the latter where a tensor stands below
const LEAST = 300; // of usual type, so that all of it is seen on a projector, too
const ABOVE = 288; // pixels of a window that stand above it

const LONGEST_NAME = "standard deviation";
const USUAL = 93; // pixels that it takes at 12 pixels, in a face of usual width

/**
 * { kind, width, height, gutter, margin } in pixels.
 * font: the family that names are set in; stacks: how many stand side by side; isAboveTensor: an open one stands below.
 */
export function pictureSize({ width, font }, stacks, isAboveTensor) {
  const kind = width >= scaled(NARROW) ? "wide" : stacks > 1 ? "tight" : "narrow";
  const height = Math.max(scaled(LEAST), Math.min(TALLEST[isAboveTensor ? "tensor" : "model"], innerHeight - ABOVE));
  const [gutter, margin] = [SIDES[kind].gutter, SIDES[kind].margin].map((pixels) => Math.min(scaled(pixels), Math.max(1, width / PHONE) * pixels));
  return { kind, width, height, gutter: gutter * breadthOf(font), margin };
}

/** How much wider than usual a face is, 1 for one that isn't. */
function breadthOf(font) {
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `12px ${font}`;
  return Math.max(1, ruler.measureText(LONGEST_NAME).width / USUAL);
}

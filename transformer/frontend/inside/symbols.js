// The symbols in the picture for operations on the stream: a sum, a norm.

import { ROLES } from "./roles.js";

const RADIUS = 4; // pixels

/** Where a sublayer's output is added to the stream. */
export function drawPlus(context, x, y, paper) {
  context.fillStyle = paper;
  context.strokeStyle = ROLES.stream;
  context.lineWidth = 1.2;
  context.beginPath();
  context.arc(x, y, RADIUS, 0, 2 * Math.PI);
  context.fill();
  context.moveTo(x - 0.6 * RADIUS, y);
  context.lineTo(x + 0.6 * RADIUS, y);
  context.moveTo(x, y - 0.6 * RADIUS);
  context.lineTo(x, y + 0.6 * RADIUS);
  context.moveTo(x + RADIUS, y);
  context.arc(x, y, RADIUS, 0, 2 * Math.PI);
  context.stroke();
}

/** A norm: "post" lies across the stream, "pre" on the way to its sublayer. */
export function drawNorm(context, where, x, y) {
  context.fillStyle = ROLES.norm;
  if (where === "post") context.fillRect(x - 5, y - 2, 10, 4);
  else context.fillRect(x - 3, y - 1.5, 6, 3);
}

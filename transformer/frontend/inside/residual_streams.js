// Draws the residual stream of each token, the sums and norms on it, and the arcs of attention.

import { drawnArcs, firstIn } from "./arcs.js";
import { columnAt, middleOf, streamAt } from "./layout.js";
import { ROLES, headColour } from "./role_colours.js";

export const DIM = 0.3; // of what isn't on the way to the selected token
export const BRIGHT = 0.1; // the share from which on something is fully lit
const THICKEST = 6.5; // pixels of an arc's width
const ABLATED = [3, 4]; // the dashes of an arc through which nothing passes
const RADIUS = 4; // pixels of a sum's sign

/** The stream of each token, from the embedding to the unembedding, as thick as its share. */
export function drawStreams(picture, stack) {
  const { context, scene } = picture;
  const blocks = stack.groups.filter(({ kind }) => kind === "block");
  const pieces = [{ from: stack.bottom, to: streamAt(stack, 0), depth: 0 }];
  blocks.forEach((block, layer) => pieces.push(...piecesOf(block, layer, scene.residual)));
  pieces.push({ from: streamAt(stack, blocks.length), to: stack.top, depth: blocks.length });
  context.strokeStyle = ROLES.stream;
  for (let token = 0; token < stack.count; token++) {
    const { stream } = columnAt(stack, token);
    for (const { from, to, depth } of pieces) {
      if (from - to < 0.5) continue;
      context.globalAlpha = picture.light(stack, depth, token);
      context.lineWidth = Math.min(0.4 * stack.pitch, 1.2 + 3.8 * Math.sqrt(Math.min(1, picture.share(stack, depth, token))));
      context.beginPath();
      context.moveTo(stream, from);
      context.lineTo(stream, to);
      context.stroke();
    }
  }
}

// Without a residual nothing runs past a sublayer: the stream is cut.
function piecesOf(block, depth, hasResidual) {
  const [before, after] = [{ from: block.bottom, to: block.top, depth }, { from: block.top, to: block.top, depth }];
  if (hasResidual) return [{ ...before, to: (block.bottom + block.top) / 2 }, { ...before, from: (block.bottom + block.top) / 2, depth: depth + 1 }];
  const cuts = block.parts.flatMap((part) => [[part.read, part.write]]);
  const pieces = [];
  let from = before.from;
  for (const [read, write] of cuts) {
    pieces.push({ from, to: read, depth });
    from = write;
  }
  return [...pieces, { ...after, from, to: block.top, depth: depth + 1 }];
}

/** The weights of an attention, each an arc from the token that is read to the one that reads. */
export function drawArcs(picture, stack, part) {
  const { context, scene } = picture;
  const weights = scene.weights(part.id);
  const from = part.crosses ? picture.layout.stacks[0] : stack;
  const { lane } = part;
  const start = part.crosses ? from.top : lane.bottom;
  const end = lane.top;
  const limit = Math.min(THICKEST, 0.5 * stack.pitch, 0.22 * (lane.bottom - lane.top));
  const x = (which, position, positions, share) => {
    const [first, last] = [firstIn(position, which.count, positions), firstIn(position + 1, which.count, positions)];
    return which.left + (first + (last - first - 1) / 2 + share) * which.pitch;
  };
  for (const { query, key, weight, head, share } of drawnArcs(weights, scene.reach.arcs[part.id])) {
    const lit = Math.min(1, share / (BRIGHT / 2));
    context.globalAlpha = lit > 0.04 ? 0.3 + 0.7 * lit : DIM * Math.min(0.9, 0.12 + weight);
    context.lineWidth = lit > 0.04 ? Math.max(0.8, Math.min(limit, 15 * Math.sqrt(share * weight))) : Math.min(0.3 * stack.pitch, 0.5 + 2.5 * weight);
    context.strokeStyle = headColour(head);
    context.setLineDash(scene.isAblated(part.id, head) ? ABLATED : []);
    const [left, right] = [x(from, key, weights.keys, 0.8), x(stack, query, weights.queries, middleOf(part.span))];
    context.beginPath();
    context.moveTo(left, start);
    if (part.crosses) {
      const gap = stack.left - stack.gutter - (picture.layout.width > 560 ? 16 : 7);
      const middle = (start + end + 16) / 2;
      context.bezierCurveTo(left, start - 30, gap, start - 30, gap, middle);
      context.bezierCurveTo(gap, end + 16, right, end + 26, right, end);
    } else {
      const bend = 0.62 * (start - end);
      context.bezierCurveTo(left, start - bend, right, end + bend, right, end);
    }
    context.stroke();
  }
  context.setLineDash([]);
}

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

/** A norm: across the stream itself, or on the way to a sublayer or from it. */
export function drawNorm(context, isOnStream, x, y) {
  context.fillStyle = ROLES.norm;
  if (isOnStream) context.fillRect(x - 5, y - 2, 10, 4);
  else context.fillRect(x - 3, y - 1.5, 6, 3);
}

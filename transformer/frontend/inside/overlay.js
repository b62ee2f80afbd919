// Draws what lies over the picture: a veil over what Play hasn't reached, and outlines around the inputs of a cell.

import { columnAt, middleOf } from "./layout.js";
import { SELECTED } from "../colours.js";
import { isRevealed, zoneOf } from "./animation.js";

const VEIL = 0.88;

/** Veil what hasn't been computed at a moment, and carry one number to its place. */
export function drawPlay(context, page, layout, scene, chapter, state) {
  const zone = zoneOf(layout, chapter);
  const now = layout.stacks.findIndex(({ prefix }) => prefix === chapter.prefix);
  layout.stacks.forEach((stack, at) => {
    if (at < now) return;
    const end = stack.right + 3;
    const veil = (left, right, top, bottom) => context.fillRect(left, top, right - left, bottom - top);
    context.fillStyle = page.paper;
    context.globalAlpha = VEIL;
    if (at > now) {
      veil(layout.stacks[at - 1].right + 1, end, 0, stack.bottom + 2);
      return;
    }
    veil(stack.left - 2, end, now === 0 && layout.stacks.length > 1 ? 0 : stack.top - 2, zone.top);
    const token = tokenOf(stack, scene);
    for (let column = 0; column < stack.count; column++) {
      if (isRevealed(state, column, token, stack.count)) continue;
      const { start } = columnAt(stack, column);
      veil(start, start + stack.pitch + 0.5, zone.top, zone.bottom);
    }
    context.globalAlpha = 1;
    if (state.phase !== "all" || state.progress < 1) drawCarried(context, page, stack, zone, state, token, layout, scene);
  });
  context.globalAlpha = 1;
}

function tokenOf(stack, scene) {
  return stack.writes ? scene.token : scene.source ?? stack.count - 1;
}

// One number on its way: along the strongest arc, or up its own column.
function drawCarried(context, page, stack, zone, { phase, progress }, token, layout, scene) {
  const { start, stream } = columnAt(stack, token);
  const share = phase === "cell" ? ease(progress) : 1;
  const target = { x: start + middleOf(zone.part.span) * stack.pitch, y: zone.target };
  let from = { x: stream, y: zone.bottom };
  if (zone.lane && zone.part.module) {
    const source = zone.part.crosses ? layout.stacks[0] : stack;
    from = { x: columnAt(source, scene.strongest(zone.part, token)).stream, y: zone.part.crosses ? source.top : zone.lane.bottom };
  }
  const bend = 0.62 * (from.y - target.y);
  const along = (a, b, c, d) => (1 - share) ** 3 * a + 3 * (1 - share) ** 2 * share * b + 3 * (1 - share) * share ** 2 * c + share ** 3 * d;
  const [x, y] = [along(from.x, from.x, target.x, target.x), along(from.y, from.y - bend, target.y + bend, target.y)];
  context.strokeStyle = SELECTED;
  context.lineWidth = 1.5;
  context.globalAlpha = 0.6;
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.bezierCurveTo(from.x, from.y - bend, target.x, target.y + bend, target.x, target.y);
  context.stroke();
  context.globalAlpha = 1;
  context.fillStyle = SELECTED;
  context.strokeStyle = page.paper;
  context.beginPath();
  context.arc(x, y, 5, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
}

function ease(share) {
  return share * share * (3 - 2 * share);
}

/**
 * Outline the cells of rows that are drawn. cells: [{ name, index }] as a pass has them, null for all of a dimension; dims(name):
 * the dimensions of a tensor; CELLS: of a column's width, what a row takes.
 */
export function drawMade(context, layout, cells, { dims, sizes, spanOf, colour }) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.globalAlpha = 1;
  for (const { name, index } of cells) {
    const box = drawnBox(layout, name);
    if (!box) continue;
    const { stack, top, bottom, span } = box;
    const named = dims(name);
    const at = named.findIndex((dim) => dim === "pos" || dim === "query" || dim === "key");
    const tokens = at < 0 || index[at] === null ? [0, stack.count - 1] : [index[at], index[at]];
    const [from, to] = span ?? spanOf(name);
    const own = shareOf(named, sizes(name), index, at);
    if (tokens[0] === tokens[1] && own) {
      const { start } = columnAt(stack, tokens[0]);
      const [left, right] = own.map((share) => start + (from + share * (to - from)) * stack.pitch);
      context.strokeRect(left - 1, top, Math.max(3, right - left) + 2, bottom - top);
    } else {
      const [left, right] = [columnAt(stack, tokens[0]).start + from * stack.pitch, columnAt(stack, tokens[1]).start + to * stack.pitch];
      context.strokeRect(left - 1, top, right - left + 2, bottom - top);
    }
  }
}

/** Which share of a token's cells is meant, from and to; null for all of them. */
function shareOf(dims, sizes, index, at) {
  let [from, to, part] = [0, 1, 1];
  for (let axis = 0; axis < dims.length; axis++) {
    if (axis === at) continue;
    if (index[axis] === null) return part === 1 ? null : [from, to];
    part /= sizes[axis];
    from += index[axis] * part;
    to = from + part;
  }
  return part === 1 ? null : [from, to];
}

function drawnBox(layout, name) {
  const isOfSource = name.includes("cross_attn.hook_k") || name.includes("cross_attn.hook_v");
  for (const stack of layout.stacks) {
    for (const group of stack.groups) {
      for (const part of group.parts) {
        const row = part.rows.find((candidate) => candidate.name === name);
        const box = row ?? (part.strip && part.out === name ? part.strip : null);
        if (box) return { stack: isOfSource ? layout.stacks[0] : stack, top: box.top + 1, bottom: box.bottom - 1, span: row ? undefined : part.span };
      }
      if (group.kind === "block" && !group.isOpen && stack.depths[group.layer + 1].includes(name)) return { stack, top: group.top - 1, bottom: group.top + 8 };
    }
  }
  return null;
}

// Computes the picture's layout, a pure function of the model's structure, the room, and what is open. A token has an x and
// a stage a y; what is opened pushes the others aside. In pixels; y grows downwards, the pass goes up. Sizes that depend on
// words are in pixels of usual type, and scale with it.

import { scaled } from "../axis_labels.js";
import { plainName } from "./plain_names.js";

/** @import { Norm } from "../attention_config.js" */
/** @import { Focus, Group, Part, Stack, Structure } from "./structure.js" */

/**
 * @typedef {[from: number, to: number]} Span of a column's width
 * @typedef {{ top: number, bottom: number }} Band
 * @typedef {{ name: string } & Band} Row
 *
 * @typedef {object} Standing
 * @property {boolean} isOpen
 * @property {Row[]} rows
 * @property {Band | null} header
 * @property {number} read the y at which it reads the stream
 * @property {number} write the y at which it adds to the stream
 * @property {Band | null} strip what stands for a closed one
 * @property {Band | null} lane for its arcs
 * @property {number | null} normAt y of the norm before it, or of the one on the stream after it
 * @property {number | null} normAfterAt y of the norm on its output
 * @property {Span} [span]
 * @property {number} [way]
 *
 * @typedef {Part & Band & Standing} PlacedPart
 * @typedef {Omit<Group, "parts"> & Band & { isOpen: boolean, isFolded: boolean, parts: PlacedPart[] }} PlacedGroup
 * @typedef {{ left: number, right: number, pitch: number, gutter: number, end: number }} Columns end: where the next stack, or the picture's edge, begins
 * @typedef {Omit<Stack, "groups" | "layers"> & Columns & Band & { groups: PlacedGroup[] }} PlacedStack
 * @typedef {{ width: number, height: number, stacks: PlacedStack[] }} Layout
 *
 * @typedef {object} PictureTarget what is at a point
 * @property {PlacedStack} stack
 * @property {PlacedGroup | null} group
 * @property {PlacedPart | null} part
 * @property {Row | null} row
 * @property {number | null} token
 *
 * @typedef {object} Room
 * @property {number} width
 * @property {number} height
 * @property {number} gutter for names, left of each stack
 * @property {number} margin for the logit lens, on the right
 * @property {number} [below] for the labels of the tokens
 * @property {number} [above] for those of the predicted tokens
 */

const PITCH = { least: 0.01, most: 92 }; // widths of a column, the largest of usual type; columns shrink until the whole text fits
const LEAST_CLOSED = 16; // a block lower than that, of usual type, folds to one strip
const FOLDED_BELOW = 58; // of usual type
export const FOLDED_STRIP = 0.42; // share of a folded block's height; its arcs take the rest
const ROOMY = 560; // of the whole
const MOST_CLOSED = 260;
const END_ROW = 24;
const TALL_ROW = 30; // of an opened sublayer
const ROW = 18; // of an opened block, of usual type
const LOW_ROW = 14; // beside the selected tensor, of usual type
const CHIPS = { line: 26, letter: 7.25, edge: 23, sides: 7 }; // of a header that names parameters, of usual type
const LANE = { least: 36, low: 54, high: 92 }; // for attention's arcs
const GAP = 10; // above and below an opened block
const CLOSED_PART = 46; // a closed sublayer beside an opened one
const SHARE = { attn: 1.9, cross_attn: 1.9, mlp: 1 };
export const SIGNS = 15; // width of a column from which sums and norms are drawn
/** @type {Span} */
export const BESIDE = [0.05, 0.66]; // share of a column's width: what stands beside the stream
/** @type {Record<string, Span>} */
const ABREAST = { attn: [0.05, 0.34], mlp: [0.37, 0.66] }; // the same for two sublayers that read the same stream
const RAIL = 0.73; // share of a column's width: the lines between what is open and the stream
const CROSSING = { wide: 44, narrow: 20 }; // between an encoder and its decoder, for cross-attention's arcs

/**
 * @param {Structure} structure
 * @param {Focus | null} focus
 * @param {Room} room
 * @returns {Layout}
 */
export function layOut(structure, focus, room) {
  const { stacks } = structure;
  const columns = columnsOf(stacks, room);
  const closed = closedHeight(stacks, focus, room, columns);
  const heights = stacks.map((stack, at) => stack.groups.reduce((sum, group) => sum + groupHeight(group, focus, closed, headerWidth(columns[at])), 0));
  const height = room.above + Math.max(...heights) + room.below;
  return {
    width: room.width, height,
    stacks: stacks.map((stack, at) => standing(stack, columns[at], height - room.below, { focus, closed, structure, wide: headerWidth(columns[at]) })),
  };
}

/** The x of a token's column: left edge, middle, and stream. */
export function columnAt({ left, pitch }, token) {
  const start = left + token * pitch;
  return { start, middle: start + pitch / 2, stream: start + 0.8 * pitch };
}

/** The middle of a span, as a share of a column's width. */
export function middleOf([from, to] = BESIDE) {
  return (from + to) / 2;
}

/** The token of the column at a point, or null. */
export function tokenAt({ left, pitch, count }, x) {
  const token = Math.floor((x - left) / pitch);
  return token >= 0 && token < count ? token : null;
}

/**
 * What is at a point; null outside the stacks.
 *
 * @param {Layout} layout
 * @returns {PictureTarget | null}
 */
export function elementAt(layout, x, y) {
  for (const stack of layout.stacks) {
    if (x < stack.left - stack.gutter || x > stack.right) continue;
    const group = stack.groups.find(({ top, bottom }) => y >= top && y < bottom) ?? null;
    const part = group?.parts.find(({ top, bottom }) => y >= top && y < bottom) ?? null;
    const row = part?.rows.find(({ top, bottom }) => y >= top && y < bottom) ?? null;
    return { stack, group, part, row, token: tokenAt(stack, x) };
  }
  return null;
}

/**
 * Where a group, part or row stands; null if there is none of that name.
 *
 * @param {Layout} layout
 * @param {string} id
 * @returns {PictureTarget | null}
 */
export function whereIs(layout, id) {
  for (const stack of layout?.stacks ?? []) {
    for (const group of stack.groups) {
      if (group.id === id) return { stack, group, part: null, row: null, token: null };
      for (const part of group.parts) {
        if (part.id === id) return { stack, group, part, row: null, token: null };
        const row = part.rows.find(({ name }) => name === id);
        if (row) return { stack, group, part, row, token: null };
      }
    }
  }
  return null;
}

/** The stream's y before a stack's first block (0), and after each block. */
export function streamAt(stack, depth) {
  const blocks = stack.groups.filter(({ kind }) => kind === "block");
  if (depth < blocks.length) return blocks[depth].bottom;
  return blocks.length ? blocks.at(-1).top : stack.groups[0].top;
}

/** The columns of each stack. @returns {Columns[]} */
export function columnsOf(stacks, { width, gutter, margin }) {
  const total = stacks.reduce((sum, { count }) => sum + count, 0);
  const crossing = width > ROOMY ? CROSSING.wide : CROSSING.narrow;
  const free = width - gutter * stacks.length - crossing * (stacks.length - 1) - margin;
  const pitch = Math.max(PITCH.least, Math.min(scaled(PITCH.most), free / Math.max(total, 1)));
  let left = Math.max(0, (free - pitch * total) / 2);
  return stacks.map(({ count }, at) => {
    const right = left + gutter + count * pitch;
    const column = { left: left + gutter, pitch, right, gutter, end: at === stacks.length - 1 ? width : right + crossing };
    left = column.end;
    return column;
  });
}

// Closed blocks share the remaining height, and fold if it isn't enough.
function closedHeight(stacks, focus, room, columns) {
  const free = stacks.map((stack, at) => {
    const wide = headerWidth(columns[at]);
    const rest = stack.groups.reduce((sum, group) => sum + (isClosed(group, focus) ? 0 : groupHeight(group, focus, 0, wide)), 0);
    return (room.height - room.above - room.below - rest) / Math.max(1, stack.groups.filter((group) => isClosed(group, focus)).length);
  });
  const height = Math.min(...free, MOST_CLOSED);
  return isLow(height) ? Math.max(scaled(LEAST_CLOSED), Math.min(height, scaled(FOLDED_BELOW) - 1)) : height;
}

/** Whether a closed block is too low for its parts. */
function isLow(closed) {
  return closed < scaled(FOLDED_BELOW);
}

function isClosed(group, focus) {
  return group.kind === "block" && focus?.group !== group;
}

function groupHeight(group, focus, closed, wide) {
  if (isClosed(group, focus)) return closed;
  if (group.kind !== "block") return endHeight(group, focus, wide);
  return group.parts.reduce((sum, part) => sum + partHeight(part, focus, wide), 2 * GAP);
}

function endHeight(group, focus, wide) {
  const [part] = group.parts;
  if (focus?.group === group) return headerHeight(part, wide) + part.names.length * named(TALL_ROW) + 2 * GAP;
  return named(END_ROW) * shownAtEnd(part).length;
}

/** What stands for a closed part at the end: the norm's output, the unembedding's probabilities. */
function shownAtEnd(part) {
  return part.kind === "embed" ? part.names.filter((name) => !name.endsWith("hook_scale")) : part.names.slice(-1);
}

function partHeight(part, focus, wide) {
  if (focus.part && focus.part !== part) return CLOSED_PART;
  const { row, lane } = sizesAt(focus);
  return headerHeight(part, wide) + part.names.length * row + (part.module ? lane : 0);
}

/** A block shows all its rows, a sublayer larger ones; beside a selected tensor they are low, to leave room for it. */
function sizesAt({ part, name }) {
  if (name) return { row: scaled(LOW_ROW), lane: LANE.least };
  return part ? { row: named(TALL_ROW), lane: LANE.high } : { row: scaled(ROW), lane: LANE.low };
}

/** The height of a row: room for a name in usual type, and no more than the name needs in larger type. */
function named(row) {
  return Math.max(row, scaled(ROW));
}

/** The width that a header may take. */
function headerWidth({ left, gutter, end }) {
  return end - left + gutter;
}

/** Names of parameters take as many lines as they need. */
function headerHeight({ parameters, title }, wide) {
  const [line, letter, edge, sides] = [CHIPS.line, CHIPS.letter, CHIPS.edge, CHIPS.sides].map(scaled);
  let [lines, x] = [1, edge + (title.length + 10) * letter];
  for (const name of parameters) {
    const chip = edge + plainName(name).length * letter;
    if (x + chip > wide - sides) [lines, x] = [lines + 1, 0];
    x += chip;
  }
  return lines * line + 4;
}

/** @returns {PlacedStack} */
function standing(stack, columns, bottom, { focus, closed, structure, wide }) {
  let y = bottom;
  const groups = stack.groups.map((group) => {
    const height = groupHeight(group, focus, closed, wide);
    const isOpen = focus?.group === group;
    /** @type {PlacedGroup} */
    const placed = { ...pick(group), top: y - height, bottom: y, isOpen, isFolded: isClosed(group, focus) && isLow(closed), parts: [] };
    placed.parts = isOpen || group.kind !== "block" ? openParts(group, placed, focus, wide) : closedParts(group, placed, structure);
    if (structure.parallel && group.kind === "block") placed.parts = abreast(placed.parts, isOpen, columns.pitch);
    y -= height;
    return placed;
  });
  return { prefix: stack.prefix, tokens: stack.tokens, count: stack.count, title: stack.title, writes: stack.writes, depths: stack.depths,
    ...columns, top: y, bottom, groups };
}

function pick({ id, kind, title, target, layer }) {
  return { id, kind, title, target, layer };
}

function closedParts(group, { top, bottom, isFolded }, structure) {
  const shares = group.parts.reduce((sum, { kind }) => sum + SHARE[kind], 0);
  let y = bottom;
  return group.parts.map((part) => {
    const height = ((bottom - top) * SHARE[part.kind]) / shares;
    y -= height;
    const sign = glyph(part, y, y + height, structure);
    return isFolded && sign.lane ? { ...sign, lane: { bottom, top: top + FOLDED_STRIP * (bottom - top) } } : sign;
  });
}

/**
 * A closed sublayer: where it reads the stream, where its strip stands, where it adds.
 *
 * @param {Part} part
 * @param {number} top
 * @param {number} bottom
 * @param {{ norm?: Norm }} structure
 * @returns {PlacedPart}
 */
function glyph(part, top, bottom, structure) {
  const height = bottom - top;
  const at = (share) => bottom - share * height;
  const { norm } = structure;
  const isPost = norm === "post";
  const strip = { bottom: at(part.module ? 0.66 : 0.3), top: at(part.module ? 0.82 : 0.62) };
  return {
    ...part, top, bottom, isOpen: false, rows: [], header: null,
    read: at(0.04), write: at(isPost ? 0.88 : 0.92), strip,
    lane: part.module ? { bottom: at(0.04), top: at(0.66) } : null,
    normAt: isPost ? at(0.97) : norm === "pre" || norm === "sandwich" ? at(part.module ? 0.06 : 0.14) : null,
    normAfterAt: norm === "sandwich" || norm === "res-post" ? strip.top - 0.03 * height : null,
  };
}

/**
 * Attention and feed-forward of a parallel block: both read at one point, and one sum adds both outputs.
 *
 * @param {PlacedPart[]} parts
 * @param {boolean} isOpen
 * @param {number} pitch
 */
function abreast([attention, mlp], isOpen, pitch) {
  return [attention, mlp].map((part) => {
    const span = pitch < SIGNS || !part.strip ? undefined : ABREAST[part.kind];
    return { ...part, read: attention.read, write: mlp.write, span, way: isOpen ? RAIL : undefined };
  });
}

/** @returns {PlacedPart[]} */
function openParts(group, { bottom }, focus, wide) {
  const isBlock = group.kind === "block";
  const isOpen = focus?.group?.id === group.id;
  let y = bottom - (isOpen ? GAP : 0);
  return group.parts.map((part) => {
    if (isBlock && focus.part && focus.part.id !== part.id) {
      y -= CLOSED_PART;
      return glyph(part, y, y + CLOSED_PART, { norm: part.norm });
    }
    const { row: own, lane: across } = isOpen ? sizesAt(focus) : {};
    const high = !isOpen ? named(END_ROW) : isBlock ? own : named(TALL_ROW);
    const low = y;
    let lane = null;
    const rows = (isOpen ? part.names : shownAtEnd(part)).map((name) => {
      const row = { name, bottom: y, top: y - high };
      y = row.top;
      if (part.module && name.endsWith("hook_pattern")) {
        lane = { bottom: y, top: y - across };
        y = lane.top;
      }
      return row;
    });
    const header = isOpen ? { bottom: y, top: y - headerHeight(part, wide) } : null;
    y = header?.top ?? y;
    const out = rows.find(({ name }) => name === part.out);
    const first = rows.find(({ name }) => !name.endsWith("hook_resid_pre"));
    return { ...part, top: y, bottom: low, isOpen, rows, header, lane, read: first.bottom, write: out ? out.top : y, strip: null, normAt: null, normAfterAt: null };
  });
}

// Defines Play: the pass as chapters, and what has been computed at a moment. The scene is a pure function of time:
// moment 3.5 is the middle of the fourth chapter. Within a chapter one cell comes slowly, then the rest of its token,
// then all tokens.

import { focusOf } from "./structure.js";
/** @import { Config } from "../attention_config.js" */
/** @import { Weights } from "./arcs.js" */
/** @import { Focus, Part, Structure } from "./structure.js" */

/**
 * @typedef {{ id: string, part: string, prefix: string, name: string | null, zone: string }} Chapter
 * @typedef {{ at: number, phase: "cell" | "row" | "all", progress: number }} Moment the chapter, and how far one of its phases has come
 * @typedef {{ name: string, index: (number | null)[], role?: string }} Marked null where all of a dimension is read
 *
 * @typedef {object} Scene what is drawn on a layout
 * @property {Focus | null} focus
 * @property {number | null} head
 * @property {number} token
 * @property {number | null} source
 * @property {boolean} residual
 * @property {Config} config
 * @property {(id: string) => Weights} weights of an attention
 * @property {(id: string, head: number) => boolean} isAblated whether nothing passes through a head of an attention
 * @property {{ depths: Record<string, Float32Array[]>, arcs: Record<string, Float32Array> }} reach as `reachOf` gives it
 * @property {(part: Part, token: number) => number} strongest
 * @property {Marked[]} made what the cell that is looked at is made of
 * @property {Marked[]} own the cell itself
 * @property {{ state: Moment, chapter: Chapter } | null} [play]
 */

const WHOLE_MS = 18_000; // of all chapters together, about
const CYCLE_MS = { least: 250, most: 2600 }; // of a chapter and the rest after it
const MOVE = { most: 800, share: 0.45 }; // milliseconds in which a chapter comes, and the share of its cycle
const CELL = 0.4;
const ROW = 0.75;
const END = 0.999; // the moment at which a chapter is complete, before the next begins

/**
 * The chapters of a pass, from the bottom up. Of what is open each tensor is one; of a closed layer what its attention looks at
 * (zone "lane"), and what its last sublayer adds (zone "strip").
 *
 * @param {Structure} structure
 * @param {string} open
 * @returns {Chapter[]}
 */
export function chaptersOf(structure, open) {
  const focus = focusOf(structure, open);
  return structure.stacks.flatMap((stack) => stack.groups.flatMap((group) => group.parts.flatMap((part) => {
    const isOpen = focus?.group === group && (!focus.part || focus.part === part);
    const about = { part: part.id, prefix: stack.prefix };
    if (isOpen) return part.names.map((name) => ({ ...about, id: name, name, zone: "row" }));
    if (group.kind === "block") {
      const zones = [...(part.module ? ["lane"] : []), ...(part === group.parts.at(-1) ? ["strip"] : [])];
      return zones.map((zone) => ({ ...about, id: `${part.id} ${zone}`, name: part.out, zone }));
    }
    return (group.kind === "embed" ? part.names : part.names.slice(-1)).map((name) => ({ ...about, id: name, name, zone: "row" }));
  })));
}

/** What is to be seen at a moment. @returns {Moment} */
export function phaseAt(moment, count) {
  const at = Math.max(0, Math.min(count - 1, Math.floor(moment)));
  const time = Math.min(1, Math.max(0, moment - at));
  if (time < CELL) return { at, phase: "cell", progress: time / CELL };
  if (time < ROW) return { at, phase: "row", progress: (time - CELL) / (ROW - CELL) };
  return { at, phase: "all", progress: Math.min(1, (time - ROW) / (END - ROW)) };
}

/** The moment at which a chapter is complete. */
export function endOf(chapter) {
  return chapter + END;
}

/** Milliseconds that a chapter and the rest after it take, where there are so many. */
export function cycleOf(count) {
  return Math.min(CYCLE_MS.most, Math.max(CYCLE_MS.least, WHOLE_MS / count));
}

function moveOf(count) {
  return Math.min(MOVE.most, MOVE.share * cycleOf(count));
}

/** When Play is at a moment, in milliseconds from its beginning; of a complete chapter, when the next begins. */
export function timeOf(moment, count) {
  const at = Math.min(count - 1, Math.floor(moment));
  return isComplete(moment, at) ? (at + 1) * cycleOf(count) : at * cycleOf(count) + ((moment - at) / END) * moveOf(count);
}

/** Where Play is at a time: moves are short, rests are long, and the end is that of the last chapter. */
export function momentAt(time, count) {
  const at = Math.min(count - 1, Math.floor(time / cycleOf(count)));
  return at + END * Math.min(1, (time - at * cycleOf(count)) / moveOf(count));
}

/** Whether a moment is the last one's, at which all of the pass is there. */
export function isAtEnd(moment, count) {
  return isComplete(moment, count - 1);
}

function isComplete(moment, chapter) {
  return moment >= endOf(chapter) - 1e-9;
}

/** Where the steps of the arrow keys lead: complete chapters. */
export function stepFrom(moment, by, count) {
  const at = Math.min(count - 1, Math.floor(moment));
  const target = by > 0 ? (isComplete(moment, at) ? at + 1 : at) : at - 1;
  return endOf(Math.max(0, Math.min(count - 1, target)));
}

/** Whether a token's column shows a chapter already. token: the one that is followed. */
export function isRevealed({ phase, progress }, column, token, count) {
  if (column === token) return phase !== "cell";
  if (phase !== "all") return false;
  return Math.abs(column - token) <= progress * Math.max(token, count - 1 - token);
}

/** Where a chapter stands in a layout: { top, bottom, target }, target the y of its cells; null if it isn't drawn. */
export function zoneOf(layout, { part: id, prefix, name, zone }) {
  const stack = layout.stacks.find((candidate) => candidate.prefix === prefix);
  for (const group of stack.groups) {
    const part = group.parts.find((candidate) => candidate.id === id);
    if (!part) continue;
    const row = part.rows.find((candidate) => candidate.name === name);
    if (zone === "row" && row) return { stack, part, top: name.endsWith("hook_pattern") && part.lane ? part.lane.top : row.top, bottom: row.bottom, target: (row.top + row.bottom) / 2, lane: null };
    if (group.isFolded || !part.strip) return { stack, part, top: part.top, bottom: part.bottom, target: (part.top + part.bottom) / 2, lane: part.lane };
    if (zone === "lane") return { stack, part, top: part.lane.top, bottom: part.bottom, target: part.lane.top, lane: part.lane };
    return { stack, part, top: part.top, bottom: part.module ? part.lane.top : part.bottom, target: (part.strip.top + part.strip.bottom) / 2, lane: null };
  }
  return null;
}

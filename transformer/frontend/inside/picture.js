// Draws the picture of a pass on a canvas, with a second canvas above it for hover and Play.

import { BRIGHT, DIM, drawArcs, drawNorm, drawPlus, drawStreams } from "./residual_streams.js";
import { BESIDE, FOLDED_STRIP, SIGNS, columnAt, middleOf } from "./layout.js";
import { Move, isAlike, mayMove } from "./transition.js";
import { drawMade, drawPlay } from "./overlay.js";
import { poolOf } from "./arcs.js";
import { roleColour } from "./role_colours.js";
import { imageOf, kindOf, pooled } from "./vector_strips.js";
import { SELECTED } from "../colours.js";
import { attribute, node } from "../dom.js";
import { prepared } from "../canvas.js";
/** @import { Page } from "../canvas.js" */
/** @import { Layout, Span } from "./layout.js" */
/** @import { InsidePass } from "./pass.js" */
/** @import { Scene } from "./animation.js" */

const NARROW = 12; // width of a column below which its cells run upwards
const THIN = 6; // width of a column below which neighbours are drawn in one go
const LEVELS_OF_LIGHT = 20;
/** @type {Record<string, Span>} */
const CELLS = { full: [0.05, 0.95], beside: BESIDE }; // share of a column's width: on the stream, and beside it
const BEND = 12; // radius of a bend, in pixels
const FAINT = 0.12; // opacity of cells that don't lead to the selected token
const FRAMED = 0.45; // opacity from which a column's cells get a frame

/** The share of a column's width that a tensor's cells take. @returns {Span} */
function spanOf(name) {
  return /hook_resid_|_embed|ln_final|uncapped|logits|probabilities/.test(name) ? CELLS.full : CELLS.beside;
}

// A line between the stream and a box: along the column, with a bend at each end.
function drawWay(context, [stream, from], way, [middle, to]) {
  const bend = Math.sign(to - from) * Math.min(BEND, Math.abs(to - from) / 2);
  context.moveTo(stream, from);
  context.quadraticCurveTo(way, from, way, way === middle ? to : from + bend);
  if (way === middle) return;
  context.lineTo(way, to - bend);
  context.quadraticCurveTo(way, to, middle, to);
}

export class Picture {
  /** @type {Page} */ page; // colours; set it before drawing
  /** @type {InsidePass} */ pass;
  /** @type {Layout | null} */ layout;
  /** @type {Scene} */ scene;
  /** @type {Move | null} */ move;

  constructor(parent) {
    this.stage = parent;
    this.canvas = node("canvas", "picture", parent);
    this.marks = node("canvas", "marks", parent);
    // An animated move has two more canvases: the picture before it, and the one after it.
    this.spare = node("canvas", "picture");
    this.ahead = node("canvas", "");
    this.images = new Map();
  }

  /** Show a new pass, and drop what was drawn of the last one. */
  begin(pass) {
    this.pass = pass;
    this.images.clear();
    this.layout = null;
    this.land();
  }

  /** End the move that is under way, if any. */
  land() {
    this.move?.stop();
    this.move = null;
    attribute(this.stage, "data-moving", "false");
    if (this.layout) this.mark(null);
  }

  /**
   * @param {Layout} layout
   * @param {Scene} scene
   */
  draw(layout, scene) {
    this.leaveFor(layout, scene);
    Object.assign(this, { layout, scene });
    if (this.move) this.move.aim(layout);
    else this.drawOn(this.canvas);
    this.mark(null);
  }

  drawOn(canvas) {
    const { layout } = this;
    const context = (this.context = prepared(canvas, layout.width, layout.height));
    for (const stack of layout.stacks) {
      this.drawGround(stack);
      drawStreams(this, stack);
    }
    for (const stack of layout.stacks) for (const part of this.partsOf(stack)) if (part.lane) drawArcs(this, stack, part);
    for (const stack of layout.stacks) {
      for (const group of stack.groups) this.drawGroup(stack, group);
      this.drawSelected(stack);
    }
    context.globalAlpha = 1;
  }

  // Opening something is animated; any other change, such as the page's width, is drawn at once.
  leaveFor(layout, scene) {
    if (!this.layout || isAlike(this.layout, layout)) return;
    const isSame = this.layout.width === layout.width || this.scene.focus?.name !== scene.focus?.name; // a selected tensor takes some of the width
    const moves = isSame && !scene.play && mayMove();
    if (moves && this.move && !this.move.hasBegun) return; // it will lead to the new layout
    this.move?.stop();
    this.move = null;
    if (moves) {
      [this.canvas, this.spare] = [this.spare, this.canvas];
      const pictures = { before: this.spare, after: this.ahead, from: this.layout };
      this.move = new Move(this.canvas, pictures, { draw: (canvas) => this.drawOn(canvas), ended: () => this.land() });
    }
    attribute(this.stage, "data-moving", String(moves));
  }

  partsOf(stack) {
    return stack.groups.flatMap((group) => (group.kind === "block" ? group.parts : []));
  }

  /** How much of the selected token's flow passes through a token at a depth of the stream, from 0 to 1. */
  share(stack, depth, token) {
    const shares = this.scene.reach.depths[stack.prefix];
    const row = shares[Math.min(depth, shares.length - 1)];
    return row[poolOf(token, stack.count, row.length)];
  }

  light(stack, depth, token, least = DIM) {
    if (stack.writes && token === this.scene.token) return 1;
    return least + (1 - least) * Math.min(1, this.share(stack, depth, token) / BRIGHT);
  }

  drawGround(stack) {
    const { context, page } = this;
    for (const group of stack.groups) {
      if (!group.isOpen) continue;
      context.fillStyle = page.ink;
      context.globalAlpha = 0.045;
      context.fillRect(stack.left - stack.gutter, group.top, stack.end - stack.left + stack.gutter, group.bottom - group.top);
    }
    context.globalAlpha = 1;
  }

  drawGroup(stack, group) {
    const blocks = stack.groups.filter(({ kind }) => kind === "block");
    const depth = group.kind === "block" ? group.layer : group.kind === "embed" ? 0 : blocks.length;
    if (group.isFolded) this.drawFolded(stack, group);
    else {
      for (const part of group.parts) {
        if (part.strip) this.drawGlyph(stack, part, depth);
        for (const row of part.rows) this.drawRow(stack, part, row, depth);
      }
      if (group.kind === "block" && !group.isOpen) this.cells(stack, stack.depths[group.layer + 1][0], group.top, 7, CELLS.full, depth + 1);
    }
  }

  drawFolded(stack, group) {
    const high = Math.max(4, FOLDED_STRIP * (group.bottom - group.top) - 1);
    this.cells(stack, stack.depths[group.layer + 1][0], group.top, high, CELLS.full, group.layer + 1);
  }

  // A sublayer reads the stream below, and adds to it above.
  drawGlyph(stack, part, depth) {
    const { context, scene } = this;
    const colour = roleColour(part.kind, scene.head);
    const { strip, read, write, span = BESIDE } = part;
    if (stack.pitch >= SIGNS) {
      for (let token = 0; token < stack.count; token++) {
        const { start, stream } = columnAt(stack, token);
        const middle = start + middleOf(span) * stack.pitch;
        const way = part.way ? start + part.way * stack.pitch : middle;
        context.globalAlpha = this.light(stack, depth + 1, token, FAINT);
        context.strokeStyle = colour;
        context.lineWidth = 1.3;
        context.beginPath();
        if (!part.module) {
          drawWay(context, [stream, read], way, [middle, strip.bottom]);
        }
        drawWay(context, [stream, write], way, [middle, strip.top]);
        context.stroke();
        if (scene.residual) drawPlus(context, stream, write, this.page.paper);
        if (part.normAt !== null) drawNorm(context, part.norm === "post", part.norm === "post" || part.module ? stream : middle, part.normAt);
        if (part.normAfterAt !== null) drawNorm(context, false, middle, part.normAfterAt);
      }
    }
    this.cells(stack, part.out, strip.top, strip.bottom - strip.top, span, depth + 1, colour);
  }

  drawRow(stack, part, row, depth) {
    const margin = row.bottom - row.top > 20 ? 4 : 2;
    const colour = roleColour(part.kind, this.scene.head);
    const high = row.bottom - row.top - 2 * margin;
    if (this.cells(stack, row.name, row.top + margin, high, spanOf(row.name), depth + 1, part.isOpen ? colour : null)) return;
    if (row.name === "probabilities") this.drawLikeliest(stack, row.top + margin, high);
    else this.drawAwaited(stack, row.top + margin, high, spanOf(row.name));
  }

  // The probability of the likeliest prediction at each token, until all probabilities have arrived.
  drawLikeliest(stack, top, high) {
    const { context, pass } = this;
    const { data, shape } = pass.outline["next.probability"];
    for (let token = 0; token < stack.count; token++) {
      const { start } = columnAt(stack, token);
      context.globalAlpha = this.light(stack, stack.groups.length, token);
      context.fillStyle = this.page.ink;
      const tall = Math.max(1, high * data[token * shape[1]]);
      context.fillRect(start + 0.2 * stack.pitch, top + high - tall, 0.6 * stack.pitch, tall);
    }
  }

  drawAwaited(stack, top, high, [from, to]) {
    const { context, page } = this;
    context.globalAlpha = 0.5;
    context.fillStyle = page.hidden;
    for (let token = 0; token < stack.count; token++) {
      const { start } = columnAt(stack, token);
      context.fillRect(start + from * stack.pitch, top + 0.25 * high, Math.max(1, (to - from) * stack.pitch), 0.5 * high);
    }
  }

  /** Draw a tensor's cells in each token's column; false while they are missing. */
  cells(stack, name, top, high, [from, to], depth, frame = null) {
    const isUpright = stack.pitch < NARROW;
    const image = this.image(name, isUpright);
    if (!image) return false;
    const { context } = this;
    const wide = Math.max(1, (to - from) * stack.pitch);
    context.imageSmoothingEnabled = !isUpright && image.width > wide;
    // Cross-attention's keys and values belong to the source, so they stand in the source's columns.
    const columns = name.includes("cross_attn.hook_k") || name.includes("cross_attn.hook_v") ? this.layout.stacks[0] : stack;
    const lightOf = (token) => this.light(columns, columns === stack ? depth : 99, token, FAINT);
    if (isUpright && columns.pitch < THIN) {
      this.drawRuns(image, columns, top, high, lightOf);
      return true;
    }
    for (let token = 0; token < columns.count; token++) {
      const { start } = columnAt(columns, token);
      const left = start + from * columns.pitch;
      context.globalAlpha = lightOf(token);
      if (isUpright) context.drawImage(image, token, 0, 1, image.height, left, top, wide, high);
      else context.drawImage(image, 0, token, image.width, 1, left, top, wide, high);
      if (frame && !isUpright && context.globalAlpha > FRAMED) {
        context.strokeStyle = frame;
        context.lineWidth = 1.2;
        context.strokeRect(left - 0.5, top - 0.5, wide + 1, high + 1);
      }
    }
    return true;
  }

  // Thin neighbouring columns of one opacity are drawn in one go.
  drawRuns(image, columns, top, high, lightOf) {
    const { context } = this;
    const level = (token) => Math.round(LEVELS_OF_LIGHT * lightOf(token));
    for (let token = 0; token < columns.count;) {
      let next = token + 1;
      while (next < columns.count && level(next) === level(token)) next++;
      context.globalAlpha = level(token) / LEVELS_OF_LIGHT;
      context.drawImage(image, token, 0, next - token, image.height, columnAt(columns, token).start, top, (next - token) * columns.pitch, high);
      token = next;
    }
  }

  image(name, isUpright) {
    const { pass, scene, page: { isDark } } = this;
    const head = pass.headsOf(name) ? scene.head : null;
    const kind = kindOf(name);
    const key = `${name} ${head} ${isUpright} ${isDark}`;
    if (this.images.has(key)) return this.images.get(key);
    const strip = pass.strip(name);
    let cells = null;
    if (strip) cells = { tokens: strip.rows, cells: strip.columns, bytes: strip.data.map((byte) => Math.min(byte, 254)) };
    else if (pass.has(name, head)) cells = pooled(pass.tensor(name, head), kind);
    if (!cells) return null;
    this.images.set(key, imageOf(cells, kind, isUpright, isDark));
    return this.images.get(key);
  }

  drawSelected(stack) {
    const { context, scene } = this;
    const token = stack.writes ? scene.token : scene.source;
    if (token === null || token === undefined) return;
    const { start } = columnAt(stack, token);
    context.globalAlpha = 0.9;
    context.strokeStyle = SELECTED;
    context.lineWidth = 1.5;
    for (const y of [stack.bottom + 1, stack.top - 1]) {
      context.beginPath();
      context.moveTo(start + 0.05 * stack.pitch, y);
      context.lineTo(start + 0.95 * stack.pitch, y);
      context.stroke();
    }
  }

  /** Outline what is under the pointer; null for nothing. */
  mark(target) {
    if (!this.layout) return;
    if (this.move) return; // nothing has reached its place yet, and the marks are hidden
    const { layout, page, scene, pass } = this;
    const context = prepared(this.marks, layout.width, layout.height);
    const { made, own, play } = scene;
    const about = { dims: (name) => pass.describe(name).dims, sizes: (name) => pass.describe(name).sizes, spanOf };
    drawMade(context, layout, made, { ...about, colour: page.ink });
    drawMade(context, layout, own, { ...about, colour: SELECTED });
    if (play) drawPlay(context, page, layout, scene, play.chapter, play.state);
    if (!target?.group) return;
    const { stack, group, part, row, token } = target;
    const box = row ?? (group.isOpen ? part : null) ?? group;
    const left = stack.left - stack.gutter + 2;
    context.strokeStyle = this.page.ink;
    context.globalAlpha = 0.5;
    context.lineWidth = 1;
    context.strokeRect(left, box.top + 0.5, stack.right - left + 4, box.bottom - box.top - 1);
    if (token === null) return;
    context.globalAlpha = 0.07;
    context.fillStyle = this.page.ink;
    context.fillRect(columnAt(stack, token).start, stack.top, stack.pitch, stack.bottom - stack.top);
  }
}

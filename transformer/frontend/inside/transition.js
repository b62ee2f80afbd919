// Animates the picture from one layout to another when something is opened: every group's band slides and stretches,
// while its old content fades into the new.

import { prepared } from "../canvas.js";
/** @import { Layout } from "./layout.js" */

const MOVE_MS = 240;

/** Whether the system lets things move. */
export function mayMove() {
  return !matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export class Move {
  /** @type {HTMLCanvasElement} */ canvas;
  /** @type {HTMLCanvasElement} */ before;
  /** @type {HTMLCanvasElement} */ after;
  /** @type {Layout} */ from;
  /** @type {Layout} */ to;
  /** @type {{ draw: (canvas: HTMLCanvasElement) => void, ended: () => void }} */ events;
  /** @type {number} */ began;
  /** @type {boolean} */ hasBegun;
  /** @type {boolean} */ isDrawn;

  /**
   * From the picture on a canvas, whose layout this is, on one that takes its place, to what is drawn on a third.
   * events: draw(canvas), and ended(), when the new picture stands there alone.
   */
  constructor(canvas, { before, after, from }, events) {
    Object.assign(this, { canvas, before, after, from, events, began: performance.now(), hasBegun: false });
  }

  /** To the picture that is to be drawn now, in this layout. May be called again, when more of it has come. */
  aim(to) {
    Object.assign(this, { to, isDrawn: false });
    // The next frame has enough to do with names and words; as the move begins, the picture is still what it was.
    this.frame ??= requestAnimationFrame(() => { this.frame = requestAnimationFrame(() => this.tick()); });
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.takePlace();
  }

  takePlace() {
    if (this.before.isConnected) this.before.replaceWith(this.canvas);
  }

  tick() {
    this.hasBegun = true;
    if (!this.isDrawn) this.events.draw(this.after);
    this.isDrawn = true;
    this.paint();
    if (this.share < 1) this.frame = requestAnimationFrame(() => this.tick());
    else this.events.ended();
  }

  get share() {
    return Math.min(1, (performance.now() - this.began) / MOVE_MS);
  }

  paint() {
    this.takePlace();
    const { canvas, before, after, from, to, share } = this;
    const context = prepared(canvas, to.width, to.height);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (share < 1) for (const band of bandsAt(from, to, ease(share))) this.paintBand(context, band, { before, after }, ease(share));
    else context.drawImage(after, 0, 0);
    context.restore();
  }

  // In pixels of the canvas. The band has its part of both pictures; the old one goes late and the new one comes early, or it
  // would grow pale in between.
  paintBand(context, { was, is, now }, { before, after }, share) {
    const ratio = this.canvas.width / this.to.width;
    const inPixels = ({ left, right, top, bottom }) => [left, top, right - left, bottom - top].map((length) => length * ratio);
    const draw = (image, band, light) => {
      const [x, y, wide, high] = inPixels(band);
      context.globalAlpha = light;
      context.drawImage(image, x, y, wide, Math.max(1, high), ...inPixels(now));
    };
    draw(before, was, 1 - share ** 2);
    draw(after, is, share * (2 - share));
  }
}

/**
 * Where each group, and what is below and above all of them, stands at a share of the way, from 0 to 1:
 * { was, is, now }, each with left, right, top and bottom.
 */
export function bandsAt(from, to, share) {
  return to.stacks.flatMap((_, at) => {
    const before = bandsOf(from, at);
    return bandsOf(to, at).map((is, which) => {
      const was = before[which];
      const now = Object.fromEntries(Object.keys(is).map((side) => [side, was[side] + share * (is[side] - was[side])]));
      return { was, is, now };
    });
  });
}

function bandsOf({ stacks, width, height }, at) {
  const [{ left: begin, gutter, groups }, next] = [stacks[at], stacks[at + 1]];
  const [left, right] = [Math.max(0, begin - gutter), next ? next.left - next.gutter : width];
  const bands = [{ top: groups[0].bottom, bottom: height }, ...groups, { top: 0, bottom: groups.at(-1).top }];
  return bands.map(({ top, bottom }) => ({ left, right, top, bottom }));
}

/** Whether every group of a pass stands in the same place in two of its layouts. */
export function isAlike(one, other) {
  const boxes = ({ width, height, stacks }) => [width, height, ...stacks.flatMap(({ groups }) => groups.flatMap(({ top, bottom }) => [top, bottom]))];
  return boxes(one).join() === boxes(other).join();
}

function ease(share) {
  return 1 - (1 - share) ** 3;
}

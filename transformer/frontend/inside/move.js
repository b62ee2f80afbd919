// How the picture comes from one layout to another when something is opened: every group's band slides and stretches to its
// new place, while what it was fades into what it is.

import { prepared } from "../canvas.js";
/** @import { Layout } from "./layout.js" */

export const MOVE_MS = 240;

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
  paintBand(context, { left, right, was, is, now }, { before, after }, share) {
    const ratio = this.canvas.width / this.to.width;
    const [x, wide, top, high] = [left, right - left, now.top, now.bottom - now.top].map((length) => length * ratio);
    const draw = (image, { top: y, bottom }, light) => {
      context.globalAlpha = light;
      context.drawImage(image, x, y * ratio, wide, Math.max(1, (bottom - y) * ratio), x, top, wide, high);
    };
    draw(before, was, 1 - share ** 2);
    draw(after, is, share * (2 - share));
  }
}

/**
 * Where each group, and what is below and above all of them, stands at a share of the way, from 0 to 1:
 * { left, right, was, is, now }, the last three with top and bottom.
 */
export function bandsAt(from, to, share) {
  return to.stacks.flatMap((stack, at) => {
    const next = to.stacks[at + 1];
    const [left, right] = [Math.max(0, stack.left - stack.gutter), next ? next.left - next.gutter : to.width];
    const before = bandsOf(from.stacks[at], from.height);
    return bandsOf(stack, to.height).map((is, which) => {
      const was = before[which];
      const between = (side) => was[side] + share * (is[side] - was[side]);
      return { left, right, was, is, now: { top: between("top"), bottom: between("bottom") } };
    });
  });
}

function bandsOf({ groups }, height) {
  return [{ top: groups[0].bottom, bottom: height }, ...groups, { top: 0, bottom: groups.at(-1).top }];
}

/** Whether every group of a pass stands in the same place in two of its layouts. */
export function isAlike(one, other) {
  const places = ({ width, height, stacks }) => [width, height, ...stacks.flatMap(({ groups }) => groups.flatMap(({ top, bottom }) => [top, bottom]))];
  return places(one).join() === places(other).join();
}

function ease(share) {
  return 1 - (1 - share) ** 3;
}

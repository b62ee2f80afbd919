// Draws the small plots beside a cell's arithmetic: a point on a function's curve, a pair of numbers turned by an
// angle, the keys that a query sees.

import { attribute, node } from "../dom.js";
import { SELECTED, SEQUENTIAL, colourAt } from "../colours.js";
import { pageOf, prepared } from "../canvas.js";
import { labelFont } from "../axis_labels.js";
import { plainNumber } from "../number_format.js";

const SIDE = 180; // pixels
const MARGIN = 14;
const BEFORE = "#0072b2";
const KEYS = { high: 92, cell: 18 }; // pixels of the keys' picture, and of a key at most
const [UNSEEN, SEEN] = [0, 1].map((share) => `rgb(${colourAt(SEQUENTIAL, share)})`); // as a mask's heatmap has them

export class SmallPlot {
  constructor(parent) {
    this.plot = node("div", "plot small", parent);
    this.canvas = node("canvas", "picture", this.plot);
    attribute(this.canvas, "role", "img");
  }

  /**
   * picture: null, or one of { kind: "curve", name, of(x), x, y, shrinks }, of a function, perhaps one that only makes smaller;
   * { kind: "angle", from, to, angle, side }, of pairs; { kind: "keys", seen, mark, passes }, passes null or what goes in and out.
   */
  show(picture) {
    this.picture = picture;
    this.plot.hidden = !picture;
    if (picture) this.draw();
  }

  draw() {
    if (!this.picture) return;
    const page = pageOf(this.plot);
    if (!page.width) return;
    const wide = Math.min(SIDE * 1.4, page.width);
    const context = prepared(this.canvas, wide, this.picture.kind === "keys" ? KEYS.high : SIDE);
    context.font = labelFont();
    context.textBaseline = "middle";
    if (this.picture.kind === "curve") this.drawCurve(context, page, wide);
    else if (this.picture.kind === "keys") this.drawKeys(context, page, wide);
    else this.drawAngle(context, page);
  }

  drawKeys(context, { ink }, wide) {
    const { seen, mark, passes } = this.picture;
    const count = seen.filter(Boolean).length;
    attribute(this.canvas, "aria-label", `The query sees ${count} of ${seen.length} ${seen.length === 1 ? "key" : "keys"}; this one ${seen[mark] ? "can be seen" : "is hidden"}`);
    const cell = Math.min(KEYS.cell, (wide - 2 * MARGIN) / seen.length);
    const [top, high] = [(KEYS.high - KEYS.cell) / 2, KEYS.cell];
    seen.forEach((isSeen, key) => {
      context.fillStyle = isSeen ? SEEN : UNSEEN;
      context.fillRect(MARGIN + key * cell, top, Math.max(cell - (cell > 4 ? 1 : 0), 0.5), high);
    });
    const middle = MARGIN + (mark + 0.5) * cell;
    context.strokeStyle = SELECTED;
    context.lineWidth = 2;
    context.strokeRect(MARGIN + mark * cell - 1, top - 1, Math.max(cell, 2) + 1, high + 2);
    context.fillStyle = ink;
    context.textAlign = middle < wide / 3 ? "left" : middle > (2 * wide) / 3 ? "right" : "center";
    if (!passes) {
      context.fillText(seen[mark] ? "seen" : "hidden", middle, top + high + 14);
      return;
    }
    lines(context, SELECTED, 1.5, [[[middle, top - 10], [middle, top - 1]], [[middle, top + high + 1], [middle, top + high + 10]]]);
    context.fillText(plainNumber(passes[0], 3), middle, top - 20);
    context.fillText(plainNumber(passes[1], 3), middle, top + high + 20);
  }

  drawCurve(context, { ink, muted }, wide) {
    const { name, of, x, y, shrinks } = this.picture;
    attribute(this.canvas, "aria-label", `The curve of ${name} with the point (${plainNumber(x)}, ${plainNumber(y)})`);
    const reach = Math.max(3, 1.15 * Math.abs(x));
    const low = shrinks ? -reach : -0.2 * reach;
    const toX = (value) => wide / 2 + (value / reach) * (wide / 2 - MARGIN);
    const toY = (value) => SIDE - MARGIN - ((value - low) / (reach - low)) * (SIDE - 2 * MARGIN);
    lines(context, muted, 1, [[[MARGIN, toY(0)], [wide - MARGIN, toY(0)]], [[toX(0), MARGIN / 2], [toX(0), SIDE - MARGIN / 2]]]);
    const curve = Array.from({ length: 121 }, (_, at) => reach * (at / 60 - 1)).map((x) => [toX(x), toY(of(x))]);
    lines(context, ink, 2, [curve]);
    context.setLineDash([3, 3]);
    if (shrinks) lines(context, muted, 1, [[[toX(-reach), toY(-reach)], [toX(reach), toY(reach)]]]); // what would stay as it is
    lines(context, SELECTED, 1, [shrinks ? [[toX(x), toY(x)], [toX(x), toY(y)]] : [[toX(x), toY(0)], [toX(x), toY(y)], [toX(0), toY(y)]]]);
    context.setLineDash([]);
    dot(context, toX(x), toY(y));
    context.fillStyle = ink;
    context.textAlign = "left"; // where no such curve comes
    context.fillText(`x = ${plainNumber(x, 3)}`, MARGIN, MARGIN);
    context.fillText(`→ ${plainNumber(y, 3)}`, MARGIN, MARGIN + 15);
  }

  drawAngle(context, { ink, muted }) {
    const { from, to, angle, side } = this.picture;
    const turned = ((angle * 180) / Math.PI).toFixed(1);
    attribute(this.canvas, "aria-label", `The pair (${from.map((value) => plainNumber(value)).join(", ")}) turned by ${turned} degrees`);
    const middle = [SIDE / 2, SIDE / 2];
    const radius = SIDE / 2 - MARGIN;
    const length = Math.hypot(...from) || 1;
    const end = ([a, b]) => [middle[0] + (radius * a) / length, middle[1] - (radius * b) / length];
    context.beginPath();
    context.arc(...middle, radius, 0, 2 * Math.PI);
    context.strokeStyle = muted;
    context.lineWidth = 1;
    context.stroke();
    lines(context, muted, 1, [[[MARGIN, middle[1]], [SIDE - MARGIN, middle[1]]], [[middle[0], MARGIN], [middle[0], SIDE - MARGIN]]]);
    const start = Math.atan2(from[1], from[0]);
    context.beginPath(); // turns counter-clockwise, as angles do; whole turns make no difference
    context.arc(...middle, radius / 3, -start, -(start + (angle % (2 * Math.PI))), true);
    context.strokeStyle = ink;
    context.stroke();
    lines(context, BEFORE, 2.5, [[middle, end(from)]]);
    lines(context, SELECTED, 2.5, [[middle, end(to)]]);
    const tip = end(to);
    context.setLineDash([3, 3]);
    lines(context, SELECTED, 1, [[tip, side ? [middle[0], tip[1]] : [tip[0], middle[1]]]]);
    context.setLineDash([]);
    dot(context, ...tip);
    context.textAlign = "left";
    for (const [text, colour, line] of [["before", BEFORE, 0], ["after", SELECTED, 1], [`turned ${turned}°`, ink, 2]]) {
      context.fillStyle = colour;
      context.fillText(text, SIDE - 4, MARGIN + 15 * line, SIDE * 0.4);
    }
  }
}

function lines(context, colour, width, list) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  for (const [first, ...others] of list) {
    context.moveTo(...first);
    for (const point of others) context.lineTo(...point);
  }
  context.stroke();
}

function dot(context, x, y) {
  context.beginPath();
  context.arc(x, y, 4, 0, 2 * Math.PI);
  context.fillStyle = SELECTED;
  context.fill();
}

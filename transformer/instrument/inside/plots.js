// Small pictures beside an arithmetic: a point on the curve of an activation function, a pair of numbers turned by an angle.

import { attribute, node } from "../dom.js";
import { pageOf, prepared } from "../heatmap.js";
import { LABEL_FONT } from "../labels.js";
import { plainNumber } from "../numbers.js";
import { ACTIVATIONS } from "./functions.js";

const SIDE = 180; // pixels
const MARGIN = 14;
const POINT = "#d55e00";
const BEFORE = "#0072b2";

export class SmallPlot {
  constructor(parent) {
    this.plot = node("div", "plot small", parent);
    this.canvas = node("canvas", "picture", this.plot);
    attribute(this.canvas, "role", "img");
  }

  /** picture: as `arithmeticOf` has it, or null. */
  show(picture) {
    this.picture = picture;
    this.plot.hidden = !picture;
    if (picture) this.draw();
  }

  draw() {
    if (!this.picture) return;
    const page = pageOf(this.plot);
    if (!page.width) return;
    const context = prepared(this.canvas, Math.min(SIDE * 1.4, page.width), SIDE);
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    if (this.picture.kind === "curve") this.drawCurve(context, page);
    else this.drawAngle(context, page);
  }

  drawCurve(context, { ink, muted }) {
    const { activation, x, y } = this.picture;
    attribute(this.canvas, "aria-label", `The curve of ${activation} with the point (${plainNumber(x)}, ${plainNumber(y)})`);
    const wide = context.canvas.clientWidth || SIDE * 1.4;
    const reach = Math.max(3, 1.15 * Math.abs(x));
    const toX = (value) => wide / 2 + (value / reach) * (wide / 2 - MARGIN);
    const toY = (value) => SIDE - MARGIN - ((value + 0.2 * reach) / (1.2 * reach)) * (SIDE - 2 * MARGIN);
    lines(context, muted, 1, [[[MARGIN, toY(0)], [wide - MARGIN, toY(0)]], [[toX(0), MARGIN / 2], [toX(0), SIDE - MARGIN / 2]]]);
    const curve = Array.from({ length: 121 }, (_, at) => reach * (at / 60 - 1)).map((each) => [toX(each), toY(ACTIVATIONS[activation](each))]);
    lines(context, ink, 2, [curve]);
    context.setLineDash([3, 3]);
    lines(context, POINT, 1, [[[toX(x), toY(0)], [toX(x), toY(y)], [toX(0), toY(y)]]]);
    context.setLineDash([]);
    dot(context, toX(x), toY(y));
    context.fillStyle = ink;
    context.textAlign = "left"; // where no activation function comes
    context.fillText(`x = ${plainNumber(x, 3)}`, MARGIN, MARGIN);
    context.fillText(`→ ${plainNumber(y, 3)}`, MARGIN, MARGIN + 15);
  }

  drawAngle(context, { ink, muted }) {
    const { from, to, angle, side } = this.picture;
    const turned = ((angle * 180) / Math.PI).toFixed(1);
    attribute(this.canvas, "aria-label", `The pair (${from.map((each) => plainNumber(each)).join(", ")}) turned by ${turned} degrees`);
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
    lines(context, POINT, 2.5, [[middle, end(to)]]);
    const tip = end(to);
    context.setLineDash([3, 3]);
    lines(context, POINT, 1, [[tip, side ? [middle[0], tip[1]] : [tip[0], middle[1]]]]);
    context.setLineDash([]);
    dot(context, ...tip);
    context.textAlign = "left";
    for (const [text, colour, line] of [["before", BEFORE, 0], ["after", POINT, 1], [`turned ${turned}°`, ink, 2]]) {
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
  context.fillStyle = POINT;
  context.fill();
}

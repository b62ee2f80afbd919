// Sets up a canvas: its width, its colours, and a cleared drawing context.

import { readType, typeSize } from "./axis_labels.js";

/** @typedef {{ width: number, type: string, font: string, ink: string, paper: string, hidden: string, hatch: string, muted: string, isDark: boolean }} Page what drawing asks of it */

/**
 * How wide an element is, and the type and colours of its page. Read once and kept by whoever draws: to read them, the browser has
 * to lay the page out, and between two changes of the page that would take longer than the drawing.
 *
 * @param {Element} element
 * @returns {Page}
 */
export function pageOf(element) {
  readType();
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(name) || style.color;
  const [paper, hidden, hatch, muted] = ["--paper", "--hidden", "--hatch", "--muted"].map(colour);
  return { width: element.clientWidth, type: typeSize(), font: style.fontFamily, ink: style.color, paper, hidden, hatch, muted, isDark: lightnessOf(style.color) > 0.5 };
}

/** How light a computed colour is, from 0 to 1. */
function lightnessOf(colour) {
  const channels = colour.match(/[\d.]+/g)?.slice(0, 3).map(Number) ?? [0];
  return (Math.max(...channels) + Math.min(...channels)) / (colour.startsWith("color(") ? 2 : 510);
}

const ON_PAPER = 3; // a canvas's pixels for each of CSS, which is 96 to the inch

/** How many of a canvas's pixels a pixel of CSS has: as many as the screen allows, and more on paper. */
export function pixelRatio() {
  return document.documentElement.dataset.printing ? ON_PAPER : devicePixelRatio || 1;
}

/** Give a canvas a size in CSS pixels; returns its own pixels for each of them. A new size empties it. */
export function size(canvas, width, height) {
  const ratio = pixelRatio();
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    Object.assign(canvas, { width: wide, height: high });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  return ratio;
}

/**
 * A canvas of this size, empty; returns its context.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function prepared(canvas, width, height) {
  const ratio = size(canvas, width, height);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Hatch a box: so hidden cells are drawn, so that no colour scale has to be told from a grey. */
export function hatchBox(context, { left, top, wide, high }, colour) {
  context.save();
  context.beginPath();
  context.rect(left, top, wide, high);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = left - high; x < left + wide; x += 6) {
    context.moveTo(x, top + high);
    context.lineTo(x + high, top);
  }
  context.stroke();
  context.restore();
}

// Exports the text, its candidates and its attention as one picture.
import { node } from "../dom.js";
import { png, saveBlob } from "../save.js";
import { percent } from "../number_format.js";
import { lineOf, washOf } from "./token_strip.js";

const WIDTH = 960; // CSS pixels
const EDGE = 24;
const LINE = 30;
const BARS = 90;
const ATTENTION = "#d55e00";
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u; // scripts
const MOST_LINES = 60; // of the text, counted from its end

/** Save what an instrument shows. shown: { tokens, look, selected, titles, candidates }. */
export async function savePicture({ root, name, shown }) {
  const canvas = node("canvas", "");
  const ratio = Math.max(devicePixelRatio || 1, 2);
  const style = getComputedStyle(root);
  const context = canvas.getContext("2d");
  const page = { ink: style.color, paper: style.getPropertyValue("--paper"), accent: style.getPropertyValue("--accent"), font: style.fontFamily };
  const { lines, isCut } = laidOut(root, shown.tokens, page);
  const tops = { text: EDGE + 30, candidates: 0, looked: 0 };
  tops.candidates = tops.text + lines.length * LINE + 34;
  tops.looked = tops.candidates + (shown.candidates.length + 1) * 22 + 34;
  const height = tops.looked + (shown.look ? BARS + 30 : 0) + EDGE;
  canvas.width = WIDTH * ratio;
  canvas.height = height * ratio;
  context.scale(ratio, ratio);
  context.fillStyle = page.paper;
  context.fillRect(0, 0, WIDTH, height);
  context.textBaseline = "middle";
  const title = (words, y) => {
    context.fillStyle = page.ink;
    context.font = `600 15px ${page.font}`;
    context.fillText(words, EDGE, y, WIDTH - 2 * EDGE);
  };
  title(isCut ? `${shown.titles.text} (the end of it)` : shown.titles.text, EDGE + 6);
  drawText(context, lines, tops.text, shown, page);
  context.direction = "ltr";
  title(shown.titles.candidates, tops.candidates - 12);
  drawCandidates(context, shown.candidates, tops.candidates, page);
  if (shown.look) {
    title(shown.titles.look, tops.looked - 12);
    drawLook(context, shown, tops.looked, page);
  }
  saveBlob(`${name}.png`, await png(canvas));
}

/**
 * The tokens in lines as wide as the picture: { lines: [[{ token, index, drawn, x, width }]], isCut }. The browser lays them out, as it
 * knows scripts that run from right to left, across several tokens.
 */
function laidOut(root, tokens, page) {
  const box = node("div", "", root);
  Object.assign(box.style, { position: "absolute", visibility: "hidden", width: `${WIDTH - 2 * EDGE}px`, whiteSpace: "break-spaces", overflowWrap: "anywhere" });
  box.style.font = `16px/${LINE}px ${page.font}`;
  const spans = tokens.map(({ shown }) => {
    const span = node("span", "", box);
    span.textContent = shown.replaceAll("\n", "↵\n").replaceAll("\t", "⇥");
    return span;
  });
  const { left, top } = box.getBoundingClientRect();
  const lines = [[]];
  spans.forEach(({ firstChild }, index) => {
    for (const { text, rect } of firstChild ? piecesOf(/** @type {Text} */ (firstChild)) : []) {
      const row = Math.max(Math.floor((rect.top - top) / LINE), 0);
      while (lines.length <= row) lines.push([]);
      lines[row].push({ token: tokens[index], index, drawn: text, x: EDGE + rect.left - left, width: Math.max(rect.width, 4) });
    }
  });
  box.remove();
  return { lines: lines.slice(-MOST_LINES), isCut: lines.length > MOST_LINES };
}

/** A text in one piece, or letter by letter if a line break or a change of direction divides it. */
function piecesOf(text) {
  const range = document.createRange();
  const within = (start, end) => {
    range.setStart(text, start);
    range.setEnd(text, end);
    return [...range.getClientRects()].filter(({ width }) => width);
  };
  const [rect, ...others] = within(0, text.length);
  if (rect && !others.length) return [{ text: text.data.replace("\n", ""), rect }];
  let end = 0;
  return Array.from(text.data, (letter) => ({ text: letter, rect: within(end, (end += letter.length))[0] })).filter((piece) => piece.rect);
}

function drawText(context, lines, top, { look, selected }, page) {
  context.font = `16px ${page.font}`;
  lines.forEach((line, row) => {
    const y = top + row * LINE;
    context.textAlign = "left";
    for (const { token, drawn, index, x, width } of line) {
      context.fillStyle = ATTENTION;
      context.globalAlpha = washOf(look?.weight(index) ?? 0);
      context.fillRect(x, y, width, 22);
      if (token.flag !== "p" && token.probability != null) {
        context.fillStyle = page.accent;
        context.globalAlpha = lineOf(token.probability);
        context.fillRect(x, y + 22, width, 3);
      }
      context.globalAlpha = 1;
      context.fillStyle = page.ink;
      context.direction = RIGHT_TO_LEFT.test(drawn) ? "rtl" : "ltr"; // for its spaces and punctuation
      context.fillText(drawn, x, y + 12);
      if (index !== selected && index !== look?.query) continue;
      context.strokeStyle = index === selected ? page.ink : ATTENTION;
      context.lineWidth = 2;
      context.strokeRect(x, y, width, 22);
    }
  });
}

function drawCandidates(context, candidates, top, page) {
  const [bars, wide] = [EDGE + 130, WIDTH - 2 * EDGE - 250];
  candidates.forEach(({ label, probability, sampled, chosen }, row) => {
    const y = top + row * 22 + 10;
    context.fillStyle = page.ink;
    context.font = `14px ${page.font}`;
    context.fillText(label, EDGE, y, 120);
    context.fillStyle = page.accent;
    context.fillRect(bars, y - 6, wide * probability, 8);
    context.fillStyle = page.ink;
    if (sampled) context.fillRect(bars, y + 4, wide * sampled, 3);
    context.font = `13px ${page.font}`;
    context.fillText(`${percent(probability)}${chosen ? "  ✓" : ""}`, bars + wide + 14, y);
  });
  context.fillStyle = page.ink;
  context.font = `12px ${page.font}`;
  context.fillText("Wide bars: the model's probabilities, 0 to 100%. Thin bars: as sampled. ✓: written.", EDGE, top + candidates.length * 22 + 12);
}

function drawLook(context, { look, tokens }, top, page) {
  const count = Math.min(look.weights.length, Math.floor((WIDTH - 2 * EDGE) / 15));
  const first = look.weights.length - count;
  for (let at = 0; at < count; at++) {
    const index = look.start + first + at;
    const x = EDGE + at * 15;
    const high = BARS * look.weight(index);
    context.fillStyle = ATTENTION;
    context.fillRect(x + 1.5, top + BARS - high, 12, high);
    context.fillStyle = page.ink;
    context.font = `13px ${page.font}`;
    context.textAlign = "center";
    context.fillText(tokens[index].label, x + 7.5, top + BARS + 12, 15);
  }
  context.textAlign = "left";
}

// Saves a view as a picture, or its numbers as a table.
import { button, node } from "./dom.js";

/** Let the browser save a blob under a name. */
export function saveBlob(name, blob) {
  const link = node("a", "");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // not at once: the download may begin later
  if (mayBeRefused()) say(REFUSED);
}

const REFUSED = "If no file was saved: this page is shown in a frame that allows no downloads. Open it in a tab of its own, and save there.";

/** Whether a frame around the page may forbid downloads, as far as a page can know: the browser drops them without a word. */
function mayBeRefused() {
  const around = window.frameElement?.getAttribute("sandbox"); // of another origin's frame nothing is known
  return (parent !== window && origin === "null") || (typeof around === "string" && !around.includes("allow-downloads"));
}

/** A sentence at the page's foot until the visitor goes on. */
function say(sentence) {
  const said = document.body.querySelector(".save-said") ?? node("p", "save-said", document.body);
  said.setAttribute("role", "status");
  said.textContent = sentence;
  for (const event of ["pointerdown", "keydown"]) addEventListener(event, () => said.remove(), { once: true });
}

/**
 * A table as CSV (RFC 4180). columns: their names; rows: lists as long. Null and undefined are empty fields, numbers that
 * aren't finite are nan, inf and -inf, as pandas and NumPy read them.
 */
export function csv(columns, rows) {
  const written = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value !== "number" || Number.isFinite(value)) return String(value);
    return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  };
  // A field of spaces, or with some at its ends, is quoted too: some readers would take them away.
  const field = (value) => (/[",\r\n]|^\s|\s$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  // A line with nothing on it would be skipped by readers: a single empty field is quoted.
  const line = (row) => row.map((value) => field(written(value))).join(",") || (row.length === 1 ? '""' : "");
  return [columns, ...rows].map((row) => `${line(row)}\r\n`).join("");
}

const MARK = "\ufeff"; // of byte order: without it Excel doesn't take a file for UTF-8
const FORMULA = /^[=+\-@\t\r]./s; // what a spreadsheet takes for one

/** A table as a CSV file that spreadsheets read too: a text that would be taken for a formula gets an apostrophe in front. */
export function csvFile(columns, rows) {
  const asText = (value) => (typeof value === "string" && FORMULA.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value);
  return new Blob([MARK, csv(columns.map(asText), rows.map((row) => row.map(asText)))], { type: "text/csv" });
}

/** A promise of a PNG file with canvases below one another. */
export function png(...canvases) {
  const whole = node("canvas", "");
  whole.width = Math.max(...canvases.map(({ width }) => width));
  whole.height = canvases.reduce((height, canvas) => height + canvas.height, 0);
  const context = whole.getContext("2d");
  let top = 0;
  for (const canvas of canvases) {
    context.drawImage(canvas, 0, top);
    top += canvas.height;
  }
  return new Promise((resolve, reject) => {
    whole.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large to be saved."))), "image/png");
  });
}

const GAP = 16; // pixels around pictures
const LINE = 22; // pixels of a title

/**
 * A canvas with a title, and pictures with theirs in so many columns, on the colours of an element of the page.
 * pictures: [{ title, canvas }].
 */
export function composed(element, title, pictures, columns = 1) {
  const ratio = devicePixelRatio || 1;
  const width = Math.max(...pictures.map(({ canvas }) => canvas.width)) + GAP * ratio;
  const height = Math.max(...pictures.map(({ canvas }) => canvas.height)) + (GAP + LINE) * ratio;
  const whole = node("canvas", "");
  whole.width = columns * width + GAP * ratio;
  whole.height = Math.ceil(pictures.length / columns) * height + (GAP + LINE) * ratio;
  const context = whole.getContext("2d");
  const style = getComputedStyle(element);
  context.fillStyle = style.getPropertyValue("--paper");
  context.fillRect(0, 0, whole.width, whole.height);
  context.fillStyle = style.color;
  context.font = `${14 * ratio}px ${style.fontFamily}`;
  context.fillText(title, GAP * ratio, LINE * ratio);
  pictures.forEach((picture, at) => {
    const left = GAP * ratio + (at % columns) * width;
    const top = (GAP + LINE) * ratio + Math.floor(at / columns) * height;
    context.fillText(picture.title, left, top + 14 * ratio);
    context.drawImage(picture.canvas, left, top + LINE * ratio);
  });
  return whole;
}

/**
 * A small button that saves what a view shows as a PNG file. draw() → a canvas, or a promise of one. name() → the file's
 * name without its ending.
 */
export function pngButton(parent, name, draw) {
  return button(parent, "Save as PNG", async () => saveBlob(`${name()}.png`, await png(await draw())), { className: "save" });
}

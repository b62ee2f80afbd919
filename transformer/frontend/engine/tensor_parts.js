// Named tensors of a pass, whole or in part, as transformer/api/tensors.py has them: `blocks.2.attn.hook_q[:, 3]`.

import { wrong } from "../api_error.js";
import { countOf } from "../recording.js";
/** @import { Entry } from "../inside/loaded_tensors.js" */
/** @import { Tensor } from "../recording.js" */

const NAME = /^([\w.]{1,200})(?:\[([\d:, -]{1,80})\])?$/;
const INDEX = /^(?:(-?\d{1,15})|(-?\d{1,15})?\s*:\s*(-?\d{1,15})?(?:\s*:\s*(-?\d{1,15})?)?)$/;
const MOST_NAMES = 64;
const MOST_CELLS = 8_000_000; // of one answer

/** @typedef {{ text: string, entry: Entry, ranges: { from: number, count: number, step: number, isOne: boolean }[] }} Part along each dimension what it takes */

/** What names mean; an ApiError says what is wrong with one. @param {string[]} names @param {Map<string, Entry>} entries @returns {Part[]} */
export function partsOf(names, entries) {
  if (!names.length || names.length > MOST_NAMES) throw wrong("names", `there are ${names.length}; from 1 to ${MOST_NAMES} can be asked for at once`);
  const parts = [...new Set(names)].map((text) => partOf(text, entries));
  const cells = parts.reduce((sum, { ranges }) => sum + ranges.reduce((product, { count }) => product * count, 1), 0);
  if (cells > MOST_CELLS) throw wrong("names", `these tensors have ${cells.toLocaleString("en")} numbers, and one answer holds at most ${MOST_CELLS.toLocaleString("en")}; ask for parts of them, such as [0:8]`);
  return parts;
}

/** What a name means. @param {string} text @param {Map<string, Entry>} entries @returns {Part} */
export function partOf(text, entries) {
  const found = NAME.exec(text);
  if (!found) throw wrong("names", `“${text.slice(0, 80)}” is no name of a tensor; blocks.0.attn.hook_q[:, 3] is one`);
  const [, name, written] = found;
  const entry = entries.get(name);
  if (!entry) throw wrong("names", `this model has no ${name}`);
  const index = written === undefined ? [] : written.split(",");
  if (index.length > entry.sizes.length) throw wrong("names", `${name} has ${entry.sizes.length} dimensions (${entry.dims.join(", ")}); ${index.length} are indexed`);
  return { text, entry, ranges: entry.sizes.map((size, axis) => rangeOf(index[axis]?.trim() ?? ":", size, entry, axis)) };
}

// As Python has indices and slices: from the end where they are negative, and no further than there is something.
function rangeOf(written, size, { name, dims }, axis) {
  const [, at, start, stop, by] = INDEX.exec(written) ?? [null, null, null, null, "0"];
  const step = Number(by ?? 1);
  if (step === 0) throw wrong("names", `“${written}” is no index; 3, -1, :, 2:5 and ::2 are`);
  const isOne = at != null;
  const bound = (text, least, most) => Math.min(Math.max(Number(text) + (Number(text) < 0 ? size : 0), least), most);
  const [least, most] = step > 0 ? [0, size] : [-1, size - 1];
  let from = start === undefined ? (step > 0 ? 0 : size - 1) : bound(start, least, most);
  let to = stop === undefined ? (step > 0 ? size : -1) : bound(stop, least, most);
  if (isOne) [from, to] = [bound(at, -1, size), bound(at, -1, size) + 1];
  const count = isOne && (from < 0 || from >= size) ? 0 : Math.max(Math.ceil((to - from) / step), 0);
  if (!count) throw wrong("names", `${name} has ${size} positions along ${dims[axis]}; ${written} isn't there`);
  return { from, count, step, isOne };
}

/** @param {{ shape: number[], data: any }} tensor @param {Part["ranges"]} ranges @returns {Tensor} */
export function taken({ shape, data }, ranges) {
  const sizes = ranges.map(({ count }) => count);
  const kept = sizes.filter((_, axis) => !ranges[axis].isOne);
  let inner = ranges.length; // dimensions from here on are taken whole
  while (inner > 0 && sizes[inner - 1] === shape[inner - 1] && ranges[inner - 1].step === 1) inner -= 1;
  const block = countOf(shape.slice(inner));
  if (inner === 0) return { shape: kept, data: data.slice() };
  const out = new data.constructor(countOf(sizes));
  let to = 0;
  const copy = (axis, at) => {
    const { from, count, step } = ranges[axis];
    const isLast = axis === inner - 1;
    const together = isLast && step === 1 ? count : 1; // neighbours lie next to one another
    for (let each = 0; each < count; each += together) {
      const place = at * shape[axis] + from + each * step;
      if (!isLast) {
        copy(axis + 1, place);
        continue;
      }
      const part = data.subarray(place * block, (place + together) * block);
      out.set(part, to);
      to += part.length;
    }
  };
  copy(0, 0);
  return { shape: kept, data: out };
}

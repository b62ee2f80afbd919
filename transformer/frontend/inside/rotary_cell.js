// Explains one cell of a query or key with rotary positions: a pair of numbers rotated by an angle.
// Source: Su et al. 2021, RoFormer, eq. 34.

import { exactNumber, factor } from "../numbers.js";
import { headWidth } from "../shape.js";
import { positionAngle } from "./functions.js";

const n = (value) => exactNumber(value);

/** What `arithmeticOf` says of the cell, without what it adds itself. */
export function turnedCell(cell) {
  const { config, by: { pos } } = cell;
  const base = config.rotary_base ?? 10000;
  const width = config.rotary_dims ?? headWidth(config); // of what is turned
  const [{ name, reads, values }] = cell.terms("x");
  const { pair, side } = pairOf(cell.by, config.rotary_pairs === "halves", width);
  const isWhole = values.length > 2; // the vector, of which only a part is turned
  if (isWhole && cell.by.d_head >= width) {
    const at = cell.by.d_head;
    const lines = [`Only the first ${width} dimensions are turned; dimension ${at} stays as it is: ${n(values[at])}`];
    return { result: values[at], lines, links: [{ title: "before", name, at: () => reads.at(at) }] };
  }
  const places = !isWhole ? [0, 1] : config.rotary_pairs === "halves" ? [pair, pair + width / 2] : [2 * pair, 2 * pair + 1];
  const [a, b] = places.map((place) => values[place]);
  const angle = positionAngle(pos, pair, width, base);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const to = [a * cos - b * sin, a * sin + b * cos];
  const wide = config.rotary_dims ? "turned dimensions" : "d_head";
  const lines = [
    `Angle: position ÷ ${base}^(2i ÷ ${wide}), i = ${pair}: ${pos} ÷ ${base}^(${2 * pair} ÷ ${width}) = ${n(angle)}`,
    side ? `a · sin + b · cos = ${n(a)} × ${factor(sin)} + ${factor(b)} × ${factor(cos)} = ${n(to[1])}`
      : `a · cos − b · sin = ${n(a)} × ${factor(cos)} − ${factor(b)} × ${factor(sin)} = ${n(to[0])}`,
  ];
  const links = ["a", "b"].map((title, which) => ({ title, name, at: () => reads.at(places[which]) }));
  return { result: to[side], lines, links, picture: { kind: "angle", from: [a, b], to, angle, side } };
}

/** Which pair of turned dimensions a cell belongs to, and which side of it: by its own place where not all are turned. */
function pairOf({ pair, side, d_head: at }, isHalves, width) {
  if (pair !== undefined) return { pair, side };
  return isHalves ? { pair: at % (width / 2), side: Number(at >= width / 2) } : { pair: Math.floor(at / 2), side: at % 2 };
}

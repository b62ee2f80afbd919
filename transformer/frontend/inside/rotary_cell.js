// Explains one cell of a query or key with rotary positions: a pair of numbers rotated by an angle.
// Source: Su et al. 2021, RoFormer, eq. 34.

import { rotaryAngle, rotaryPair, rotatePair } from "../arithmetic.js";
import { exactNumber, factor } from "../number_format.js";

const n = (value) => exactNumber(value);

/** What `arithmeticOf` says of the cell, without what it adds itself. */
export function rotatedCell(cell) {
  const { by: { pos }, equation: { constants } } = cell;
  const { base, dims: width, halves, factors = [], scale = 1 } = constants; // width: of what is turned
  const [{ name, reads, values }] = cell.terms("x");
  const { pair, side } = pairOf(cell.by, halves, width);
  const isWhole = values.length > 2; // the vector, of which only a part is turned
  if (isWhole && cell.by.d_head >= width) {
    const at = cell.by.d_head;
    const lines = [`Only the first ${width} dimensions are turned; dimension ${at} stays as it is: ${n(values[at])}`];
    return { result: values[at], lines, links: [{ title: "before", name, at: () => reads.at(at) }] };
  }
  const dimensions = isWhole ? rotaryPair(pair, constants) : [0, 1];
  const [a, b] = dimensions.map((dimension) => values[dimension]);
  const slower = factors[pair] ?? 1;
  const angle = rotaryAngle(pos, pair, constants);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)].map((wave) => scale * wave);
  const to = [a, b];
  rotatePair(to, 0, 1, cos, sin);
  const wide = isWhole ? "turned dimensions" : "d_head";
  const [divided, by] = slower === 1 ? ["", ""] : [" ÷ factor", ` ÷ ${n(slower)}`];
  const lines = [
    `Angle: position ÷ ${base}^(2i ÷ ${wide})${divided}, i = ${pair}: ${pos} ÷ ${base}^(${2 * pair} ÷ ${width})${by} = ${n(angle)}`,
    ...(scale === 1 ? [] : [`cos and sin of the angle are multiplied by ${n(scale)}: ${n(cos)} and ${n(sin)}`]),
    side ? `a · sin + b · cos = ${n(a)} × ${factor(sin)} + ${factor(b)} × ${factor(cos)} = ${n(to[1])}`
      : `a · cos − b · sin = ${n(a)} × ${factor(cos)} − ${factor(b)} × ${factor(sin)} = ${n(to[0])}`,
  ];
  const links = ["a", "b"].map((title, which) => ({ title, name, at: () => reads.at(dimensions[which]) }));
  return { result: to[side], lines, links, picture: { kind: "angle", from: [a, b], to, angle, side } };
}

/** Which pair of turned dimensions a cell belongs to, and which side of it: by its own index where not all are turned. */
function pairOf({ pair, side, d_head: at }, isHalves, width) {
  if (pair !== undefined) return { pair, side };
  return isHalves ? { pair: at % (width / 2), side: Number(at >= width / 2) } : { pair: Math.floor(at / 2), side: at % 2 };
}

// Recomputes one cell of a pass from the cells that its equation reads, in double precision, beside the model's own number.

import { ACTIVATIONS, bucketOf, capped, exponentiate, largestDifference, momentsOf, normalShare, positionAngle, sumOf } from "../arithmetic.js";
import { counted, exactNumber, factor } from "../number_format.js";
import { headWidth } from "../attention_config.js";
import { alike } from "../vector_bars.js";
import { Cell } from "./cell.js";
import { condensed, hasMany, inParts, largestOf, sumOfOthers } from "./largest_terms.js";
import { rotatedCell } from "./rotary_cell.js";

/** @type {[RegExp, string, string][]} */
const FACTORS = [ // factors of a sum of products, by the end of the result's name
  [/hook_raw_scores$/, "q", "k"],
  [/hook_z$/, "weight", "v"],
  [/hook_result$|attn_out$|attn\.hook_out$/, "z", "W_O"],
  [/cross_attn\.hook_k$/, "memory", "W_K"],
  [/cross_attn\.hook_v$/, "memory", "W_V"],
  [/hook_q$/, "x", "W_Q"],
  [/hook_k$/, "x", "W_K"],
  [/hook_v$/, "x", "W_V"],
  [/hook_pre_linear$/, "x", "W_up"],
  [/head\.hook_pre$/, "x", "W_head"],
  [/hook_pre$/, "x", "W_up"],
  [/hook_mlp_out$|mlp\.hook_out$/, "hidden", "W_down"],
  [/^logits$|hook_uncapped$/, "x", "W_U"],
];
const n = (value) => exactNumber(value);
const added = (value) => (value < 0 ? `− ${n(-value)}` : `+ ${n(value)}`); // the next term of a sum

/**
 * A cell's { operation, lines, result, recorded, difference }, and what is drawn of it, each empty or null where there is none:
 * along: { dim, length, label(which) } of the bars; rows: [{ name, values, upward }] of bars; mark: the cell's own bar, or null
 * where all bars add up to the cell; links: [{ title, name, at(which) }] to the cells that it reads;
 * shares: [{ title, value, name, index }] of heads and the bias; picture: for `SmallPlot`.
 */
export function arithmeticOf(pass, name, index) {
  const equation = pass.equation(name);
  const cell = new Cell(pass, name, index, equation);
  const result = { rows: [], links: [], shares: [], along: null, mark: null, picture: null, ...OPERATIONS[equation.operation](cell) };
  const recorded = pass.value(name, index);
  return { operation: equation.operation, ...result, recorded, difference: largestDifference([result.result], [recorded]) };
}

const OPERATIONS = {
  "look up": (cell) => {
    const row = cell.sum("table", "d_model");
    const [{ name, reads }] = row.terms;
    const at = cell.by.d_model;
    const [token] = reads.at(0);
    const own = row.values[at];
    const width = cell.config.d_model;
    const isSegment = cell.name.endsWith("segment_embed");
    const isScaled = cell.config.scale_embeddings && !isSegment;
    const which = isSegment ? `A token in segment ${token}` : `The token “${cell.pass.label(name, "vocab", token)}”`;
    const lines = [`${which} has row ${token} of the table; its dimension ${at} is ${n(own)}`];
    const result = isScaled ? own * Math.sqrt(width) : own;
    if (isScaled) lines.push(`× √d_model: ${n(own)} × √${width} = ${factor(own)} × ${n(Math.sqrt(width))} = ${n(result)}`);
    return { result, lines, rows: [{ name: "row", values: row.values }], along: row.along, mark: at, links: titled(cell.links(row.terms), ["the table"]) };
  },

  position: ({ by: { pos, d_model: at }, config: { d_model: width } }) => {
    const pair = Math.floor(at / 2);
    const angle = positionAngle(pos, pair, width);
    const [wave, result] = at % 2 ? ["cos", Math.cos(angle)] : ["sin", Math.sin(angle)];
    const lines = [
      `Angle: position ÷ 10000^(2i ÷ d_model), i = ${pair}: ${pos} ÷ 10000^(${2 * pair} ÷ ${width}) = ${n(angle)}`,
      `${at % 2 ? "An odd dimension is the cosine" : "An even dimension is the sine"}: ${wave}(${n(angle)}) = ${n(result)}`,
    ];
    return { result, lines, picture: { kind: "angle", from: [1, 0], to: [Math.cos(angle), Math.sin(angle)], angle, side: 1 - (at % 2) } };
  },

  add: (cell) => {
    const { terms, values, along } = cell.sum("x", "d_model");
    const at = cell.by.d_model;
    const own = terms.map((term) => term.values[at]);
    const result = values[at];
    const words = own.map((value, which) => (which ? added(value) : n(value))).join(" ");
    const lines = [terms.length > 1 ? `${words} = ${n(result)}` : `Row ${cell.by.pos} of the table, dimension ${at}: ${words}`];
    const rows = terms.map((term) => ({ name: term.title, values: term.values }));
    if (terms.length > 1) rows.push({ name: "sum", values });
    return { result, lines, rows: alike(rows), along, mark: at, links: cell.links(terms) };
  },

  spread: (cell) => {
    const { terms, values, along } = cell.sum("x");
    const { mean, variance } = momentsOf(values);
    const eps = cell.config.layer_norm_eps;
    const result = Math.sqrt(variance + eps);
    const lines = [
      `Mean of the ${counted(values.length, "number")} of x = ${n(mean)}`,
      `Variance: the mean of (x − mean)² = ${n(variance)}`,
      `√(variance + ε) = √(${n(variance)} + ${n(eps)}) = ${n(result)}`,
    ];
    const rows = [...streamRows(terms, values, "x"), { name: "(x − mean)²", values: values.map((value) => (value - mean) ** 2), upward: true }];
    return { result, lines, rows, along, links: cell.links(terms) };
  },

  normalise: (cell) => {
    const { terms, values, along } = cell.sum("x");
    const at = cell.placeIn(terms[0]);
    const [spread, gain, shift] = ["spread", "gain", "shift"].map((role) => cell.one(role));
    const { mean } = momentsOf(values);
    const centred = values[at] - mean;
    const standard = centred / spread.value;
    const scaled = standard * gain.value;
    const result = scaled + shift.value;
    const lines = [
      `x − mean = ${n(values[at])} ${added(-mean)} = ${n(centred)}`,
      `÷ the standard deviation: ${n(centred)} ÷ ${n(spread.value)} = ${n(standard)}`,
      `× the gain: ${n(standard)} × ${factor(gain.value)} = ${n(scaled)}`,
      `+ the shift: ${n(scaled)} ${added(shift.value)} = ${n(result)}`,
    ];
    const links = [...cell.links(terms), ...titled(cell.links(spread, gain, shift), ["the standard deviation", "the gain", "the shift"])];
    return { result, lines, rows: streamRows(terms, values, "x"), along, mark: at, links };
  },

  length: (cell) => {
    const { terms, values, along } = cell.sum("x");
    const { variance: mean } = momentsOf(values, false);
    const eps = cell.config.layer_norm_eps;
    const result = Math.sqrt(mean + eps);
    const lines = [
      `Mean of the squares of the ${counted(values.length, "number")} of x = ${n(mean)}`,
      `√(mean + ε) = √(${n(mean)} + ${n(eps)}) = ${n(result)}`,
    ];
    return { result, lines, rows: [...streamRows(terms, values, "x"), { name: "x²", values: values.map((value) => value ** 2), upward: true }], along, links: cell.links(terms) };
  },

  shorten: (cell) => {
    const { terms, values, along } = cell.sum("x");
    const at = cell.placeIn(terms[0]);
    const [spread, gain] = ["spread", "gain"].map((role) => cell.one(role));
    const standard = values[at] / spread.value;
    const result = standard * gain.value;
    const lines = [
      `÷ the root mean square: ${n(values[at])} ÷ ${n(spread.value)} = ${n(standard)}`,
      `× the gain: ${n(standard)} × ${factor(gain.value)} = ${n(result)}`,
    ];
    const links = [...cell.links(terms), ...titled(cell.links(spread, gain), ["the root mean square", "the gain"])];
    return { result, lines, rows: streamRows(terms, values, "x"), along, mark: at, links };
  },

  multiply: summed,

  clip: (cell) => {
    const { limit } = cell.equation.constants;
    const { result: sum, lines, ...found } = summed(cell);
    const result = Math.max(-limit, Math.min(limit, sum));
    return { ...found, result, lines: [...lines, result === sum ? `Within ± ${limit}, so it stays ${n(result)}` : `Kept within ± ${limit}: ${n(sum)} becomes ${n(result)}`] };
  },

  rotate: rotatedCell,

  divide: (cell) => {
    const x = cell.one("x");
    const links = titled(cell.links(x), ["q · k"]);
    if (cell.config.attention_scale === false) return { result: x.value, lines: [`This model doesn't divide by √d_head: ${n(x.value)}`], links };
    const width = headWidth(cell.config);
    const result = x.value / Math.sqrt(width);
    const lines = [`÷ √d_head: ${n(x.value)} ÷ √${width} = ${n(x.value)} ÷ ${n(Math.sqrt(width))} = ${n(result)}`];
    const picture = { kind: "curve", name: "÷ √d_head", of: (score) => score / Math.sqrt(width), x: x.value, y: result, shrinks: true };
    return { result, lines, links, picture };
  },

  cap: (cell) => {
    const x = cell.one("x");
    const { cap } = cell.equation.constants;
    const result = capped(x.value, cap);
    const lines = [`cap · tanh(x ÷ cap) = ${cap} × tanh(${n(x.value)} ÷ ${cap}) = ${cap} × ${n(Math.tanh(x.value / cap))} = ${n(result)}`];
    const picture = { kind: "curve", name: "cap · tanh(x ÷ cap)", of: (value) => capped(value, cap), x: x.value, y: result };
    return { result, lines, links: titled(cell.links(x), ["x"]), picture };
  },

  distance: ({ by: { head, query, key }, equation: { constants: { slopes } } }) => {
    const [away, slope] = [Math.abs(query - key), slopes[head]];
    const result = away ? -slope * away : 0;
    return { result, lines: [`−slope × distance: −${n(slope)} × |${query} − ${key}| = −${n(slope)} × ${away} = ${n(result)}`] };
  },

  bucket: (cell) => {
    const { values, terms, along } = cell.sum("table");
    const { query, key } = cell.by;
    const bucket = bucketOf(query - key, cell.equation.constants);
    const lines = [`The key is ${Math.abs(query - key)} ${query < key ? "after" : "before"} the query: distances of kind ${bucket}, for which ${n(values[bucket])} has been learned`];
    return { result: values[bucket], lines, rows: [{ name: "learned", values }], along, mark: bucket, links: titled(cell.links(terms), ["the table"]) };
  },

  see: ({ pass, name, by: { query, key } }) => {
    const { isCross, isEncoder, window, isAfter, isFar, isPadding, isSeen } = pass.visibility(name, query, key);
    const lines = isAfter ? [`The key at position ${key} comes after the query at position ${query}, so it is hidden: False`]
      : isFar ? [`The key at position ${key} is ${isEncoder ? `${window} or more positions away from` : "too far before"} the query at position ${query}, so it is hidden: False`]
      : [isCross ? "The whole source is there before the first word is written: nothing is after the query"
        : isEncoder && window < Infinity ? `The key at position ${key} is fewer than ${window} positions away from the query at position ${query}`
        : isEncoder ? "An encoder reads the whole text at once: it hides no key for coming after the query"
          : `The key at position ${key} isn't after the query at position ${query}`];
    if (!isAfter && !isFar) lines.push(isPadding ? "The key is padding, so it is hidden: False" : "The key can be seen: True");
    return { result: Number(isSeen), lines, picture: { kind: "keys", seen: keysSeen(pass, name, query), mark: key, passes: null } };
  },

  hide: (cell) => {
    const [terms, mask] = [cell.terms("x"), cell.one("mask")];
    const [score, ...biases] = terms.map(({ values: [value] }) => value);
    const sum = score + sumOf(biases);
    const result = mask.value ? sum : -Infinity;
    const lines = biases.map((bias) => `+ what the distance adds: ${n(score)} ${added(bias)} = ${n(sum)}`);
    lines.push(mask.value ? `The mask is True, so the score stays ${n(result)}` : `The mask is False: ${n(sum)} becomes −∞`);
    const { pass, by: { query, key } } = cell;
    const seen = keysSeen(pass, mask.name, query);
    seen[key] = Boolean(mask.value);
    const picture = { kind: "keys", seen, mark: key, passes: [sum, result] };
    const titles = ["the score", ...biases.map(() => "the position bias"), "the mask"];
    return { result, lines, links: titled(cell.links(...terms, mask), titles), picture };
  },

  softmax: (cell) => {
    const { terms, values, along } = cell.sum("x");
    const mark = cell.by[along.dim];
    const exponentials = new Float64Array(values.length);
    const { maximum, sum } = exponentiate(values, exponentials);
    const shares = exponentials.map((exponential) => (sum > 0 ? exponential / sum : 0));
    const own = exponentials[mark];
    const seen = values.reduce((total, score) => total + (score !== -Infinity), 0);
    const [score, share] = along.dim === "vocab" ? ["logit", "probability"] : ["score", "weight"];
    const lines = values[mark] === -Infinity ? ["exp(−∞) = 0"]
      : [`exp(${score} − the row's largest) = exp(${n(values[mark])} ${added(-maximum)}) = ${n(own)}`];
    const drawn = along.dim === "vocab" && hasMany(values.length) ? largestOf(values, mark) : null;
    const rest = drawn && sumOfOthers(exponentials, drawn);
    if (drawn) lines.push(`The row's exponentials: ${inParts(exponentials, drawn, rest, sum)}`);
    lines.push(sum > 0 ? `÷ the sum of the row's ${counted(seen, "exponential")}: ${n(own)} ÷ ${n(sum)} = ${n(shares[mark])}`
      : "The query sees no key at all: every weight is 0");
    const rows = [
      { name: score, values }, { name: "exp", values: exponentials, upward: true }, { name: share, values: shares, upward: true },
    ];
    const softmax = { result: shares[mark], lines, rows, along, mark, links: titled(cell.links(terms), [`the ${score}`]) };
    return drawn ? condensed(softmax, drawn, { exp: rest, [share]: rest / sum }) : softmax;
  },

  average: (cell) => {
    const { terms, values, along } = cell.sum("x");
    const seen = sumOf(values);
    const isSeen = Boolean(values[cell.by.key]);
    const result = isSeen ? 1 / seen : 0;
    const lines = [isSeen ? `The query sees ${seen} ${seen === 1 ? "key" : "keys"}, and weighs them all alike: 1 ÷ ${seen} = ${n(result)}` : "The key is hidden, so its weight is 0"];
    return { result, lines, rows: [{ name: "mask", values, upward: true }], along, mark: cell.by.key, links: titled(cell.links(terms), ["the mask"]) };
  },

  activate: activated,

  gate: (cell) => {
    const [gate, through] = [activated(cell), cell.one("factor")];
    const result = gate.result * through.value;
    const lines = [...gate.lines, `× the up projection: ${n(gate.result)} × ${factor(through.value)} = ${n(result)}`];
    return { ...gate, result, lines, links: [...titled(gate.links, ["the gate"]), ...titled(cell.links(through), ["the up projection"])] };
  },
};

/** A sum of products, plus a bias. */
function summed(cell) {
  const [, left, named] = FACTORS.find(([ending]) => ending.test(cell.name)) ?? ["", "x", "W"];
  const right = cell.config.mlp_gate && cell.name.endsWith("mlp.hook_pre") ? "W_gate" : named;
  const x = cell.sum("x");
  const weight = cell.sum("weight");
  const products = x.values.map((value, which) => value * weight.values[which]);
  const sum = sumOf(products);
  const lines = [`${left} · ${right}: the sum of the ${counted(products.length, "product")} = ${n(sum)}`];
  const shares = x.along.dim === "head, d_head" ? headShares(cell, products) : [];
  const links = [...cell.links(x.terms), ...titled(cell.links(weight.terms), [right])];
  if (x.terms.length === 1) links[0].title = left;
  let result = sum;
  if (cell.equation.operands.bias) {
    const bias = cell.one("bias");
    result += bias.value;
    lines.push(`+ the bias: ${n(sum)} ${added(bias.value)} = ${n(result)}`);
    links.push(...titled(cell.links(bias), ["the bias"]));
    if (shares.length) shares.push({ title: "bias", value: bias.value, name: bias.name, index: bias.reads.at(0) });
  } else if (/ \+ b_/.test(cell.pass.describe(cell.name).formula)) {
    lines.push("No bias: this model has none here");
  }
  const rows = [...streamRows(x.terms, x.values, left), { name: right, values: weight.values }, { name: `${left} × ${right}`, values: products }];
  return { result, lines, rows, along: x.along, links, shares };
}

/** The activation function of one number. */
function activated(cell) {
  const x = cell.one("x");
  const kind = cell.config.activation;
  const result = ACTIVATIONS[kind](x.value);
  const lines = {
    relu: () => [`max(0, x) = max(0, ${n(x.value)}) = ${n(result)}`],
    gelu: () => [`x · Φ(x) = ${n(x.value)} × ${n(normalShare(x.value))} = ${n(result)}`],
    silu: () => [`x ÷ (1 + exp(−x)) = ${n(x.value)} ÷ ${n(1 + Math.exp(-x.value))} = ${n(result)}`],
    gelu_tanh: () => [`x ÷ 2 · (1 + tanh(√(2 ÷ π) · (x + 0.044715 x³))) at x = ${n(x.value)} is ${n(result)}`],
  }[kind]();
  return { result, lines, links: titled(cell.links(x), ["x"]), picture: { kind: "curve", name: kind, of: ACTIVATIONS[kind], x: x.value, y: result } };
}

/** Whether a query sees each key. */
function keysSeen(pass, name, query) {
  const { dims, sizes } = pass.describe(name);
  return Array.from({ length: sizes[dims.indexOf("key")] }, (_, key) => pass.visibility(name, query, key).isSeen);
}

function titled(links, titles) {
  return links.map((link, at) => ({ ...link, title: titles[at] ?? link.title }));
}

/** Bars of the stream's terms, if it has several, and of their sum. */
function streamRows(terms, values, name) {
  const rows = terms.length > 1 ? terms.map((term) => ({ name: term.title, values: term.values })) : [];
  return alike([...rows, { name, values }]);
}

/** Each head's share of a sum over heads: [{ title, value, name, index }]. */
function headShares({ name, by, config }, products) {
  const width = products.length / config.n_heads;
  const result = name.replace(/hook_(cross_)?attn_out$/, "$1attn.hook_result").replace(/attn\.hook_out$/, "attn.hook_result");
  return Array.from({ length: config.n_heads }, (_, head) => ({
    title: `head ${head}`, value: sumOf(products.subarray(head * width, (head + 1) * width)),
    name: result, index: [by.pos, head, by.d_model],
  }));
}

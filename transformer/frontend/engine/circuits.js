// QK and OV circuits, like transformer/inference/circuits.py: what one head's weights do with every pair of tokens, without a
// text. Source: Elhage et al. 2021, "A mathematical framework for transformer circuits".

import { wrong } from "../api_error.js";
import { dotProducts, momentsOf } from "../arithmetic.js";
import { headWidth, keyHeadOf, keyHeads, scoreDivisor } from "../attention_config.js";
import { ids, whole } from "./questions.js";
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Recording } from "../recording.js" */

const MOST_TOKENS = 256; // rows and columns of a circuit
const LABELLED_VOCABULARY = 512;

/** @typedef {{ rows: number, columns: number, data: ArrayLike<number> & { [at: number]: number } }} Matrix row-major */

/** The two factors of a head's circuit, over all tokens or the strongest of very many. @param {LiveModel} live @param {Record<string, any>} values @param {Rest} rest @returns {Promise<Recording>} */
export async function circuit(live, { kind, attention, head: asked, tokens = null }, rest) {
  const { config, about } = live;
  if (!about.circuits[attention]?.includes(kind)) throw wrong("attention", `this model has no ${kind} circuit in “${String(attention).slice(0, 60)}”`);
  const head = whole("head", asked, 0, config.n_heads - 1);
  const read = ids("tokens", tokens);
  const { first, enters, leaves, last } = kind === "qk" ? qk(live, attention, head) : ov(live, attention, head);
  const [left, right] = [dots(first, enters), dots(last, leaves)];
  await rest();
  const [rows, columns] = [[left, right], [right, left]].map(([own, other]) => strongest(own, other, read));
  const [chosenLeft, chosenRight] = [chosen(left, rows), chosen(right, columns)];
  await rest();
  const through = dots(transposed(leaves), transposed(enters)); // the whole circuit as one matrix
  const full = dots(dots(chosen(first, rows), through), chosen(last, columns));
  const product = dots(chosenLeft, chosenRight);
  let [deviation, magnitude] = [0, 0];
  for (let at = 0; at < full.data.length; at++) {
    deviation = Math.max(deviation, Math.abs(product.data[at] - full.data[at]));
    magnitude = Math.max(magnitude, Math.abs(full.data[at]));
  }
  const name = `circuit[${kind}, ${attention}, ${head}]`;
  const isNamed = Object.keys(about.kinds).length <= LABELLED_VOCABULARY;
  return {
    tensors: {
      [`${name}.left`]: asTensor(chosenLeft), [`${name}.right`]: asTensor(chosenRight),
      [`${name}.rows`]: { shape: [rows.length], data: Int32Array.from(rows) }, [`${name}.columns`]: { shape: [columns.length], data: Int32Array.from(columns) },
      [`${name}.check`]: { shape: [2], data: Float32Array.of(deviation, magnitude) },
    },
    metadata: { vocabulary: isNamed ? {} : Object.fromEntries([...new Set([...rows, ...columns])].map((token) => [token, live.label(token)])) },
  };
}

/** QK: how well one token's query fits another's key, both at one position, where rotations have no effect. @param {LiveModel} live @param {string} attention @param {number} head */
function qk(live, attention, head) {
  const [q, k] = ["q", "k"].map((name) => read(live, `${attention}.hook_${name}`, head));
  const rotation = live.model.equations.find(({ name }) => name === `${attention}.hook_rot_q`);
  const factor = (rotation?.constants.scale ?? 1) ** 2 / scoreDivisor(live.config);
  return { first: q.table, enters: scaled(q.matrix, factor), leaves: k.matrix, last: k.table };
}

/** OV: what attending to a token adds to the logit of each next token. @param {LiveModel} live @param {string} attention @param {number} head */
function ov(live, attention, head) {
  const { config, about: { norms } } = live;
  const value = read(live, `${attention}.hook_v`, head);
  const [width, out] = [headWidth(config), live.numbers(`${attention}.out.weight`)];
  /** @type {Matrix} */
  let leaves = { rows: width, columns: config.d_model, data: new Float64Array(width * config.d_model) };
  for (let row = 0; row < width; row++) for (let column = 0; column < config.d_model; column++) leaves.data[row * config.d_model + column] = out[column * config.n_heads * width + head * width + row];
  const side = config.architecture === "encoder-decoder" ? "decoder." : "";
  const passed = [...(norms.added ? [`${attention.slice(0, attention.lastIndexOf("."))}.ln1_post.weight`] : []), ...(norms.last ? [`${side}ln_final.weight`] : [])];
  for (const norm of passed) leaves = gained(centred(config, leaves), live.numbers(norm));
  return { first: value.table, enters: value.matrix, leaves, last: table(live, "unembed.weight") };
}

/** The embedding table, and the matrix by which a head reads it, norms and scale included. @param {LiveModel} live @param {string} name @param {number} head */
function read(live, name, head) {
  const { config, about: { norms }, model: { equations } } = live;
  const equation = equations.find((each) => each.name === name);
  const reads = equation.operands.x[0].name;
  const side = /^(encoder|decoder)\./.exec(reads)?.[0] ?? "";
  const operand = equation.operands.weight[0];
  const isShared = operand.cells.includes("kv_head");
  const which = operand.cells[0];
  const before = typeof which === "number" ? which * (isShared ? keyHeads(config) : config.n_heads) : (operand.shift ?? 0);
  const [width, own] = [headWidth(config), isShared ? keyHeadOf(config, head) : head];
  const start = (before + own) * width * config.d_model;
  /** @type {Matrix} */
  let matrix = { rows: width, columns: config.d_model, data: Float64Array.from(live.numbers(operand.name).subarray(start, start + width * config.d_model)) };
  const gain = norms.before ? equations.find((each) => each.name === reads)?.operands.gain : null;
  const embedNorm = equations.some((each) => each.name === `${side}ln_embed.hook_out`) ? [`${side}ln_embed.weight`] : [];
  for (const norm of [...(gain ? [gain[0].name] : []), ...embedNorm]) matrix = centred(config, gained(matrix, live.numbers(norm)));
  const embedding = equations.find((each) => each.name === `${side}hook_embed`).operands.table[0].name;
  return { table: table(live, embedding), matrix: scaled(matrix, config.scale_embeddings ? Math.sqrt(config.d_model) : 1) };
}

/** @param {LiveModel} live @param {string} name @returns {Matrix} */
function table(live, name) {
  const data = live.numbers(name);
  return { rows: data.length / live.config.d_model, columns: live.config.d_model, data };
}

/** The tokens with the longest rows of the circuit, and those of the text, in the order of the vocabulary. */
function strongest(own, other, among) {
  if (own.rows <= MOST_TOKENS) return Array.from({ length: own.rows }, (_, token) => token);
  const gram = dots(transposed(other), transposed(other)); // |row i|² = l_i · (RᵀR) · l_i
  const halves = dots(own, gram);
  const lengths = Array.from({ length: own.rows }, (_, row) => {
    let sum = 0;
    for (let at = row * own.columns; at < (row + 1) * own.columns; at++) sum += halves.data[at] * own.data[at];
    return sum;
  });
  for (const token of [...new Set(among)].sort((one, two) => one - two).slice(0, MOST_TOKENS)) lengths[token] = Infinity;
  return lengths.map((_, token) => token).sort((one, two) => lengths[two] - lengths[one] || one - two).slice(0, MOST_TOKENS).sort((one, two) => one - two);
}

// Matrices

/** one · otherᵀ. @param {Matrix} one @param {Matrix} other @returns {Matrix} */
function dots(one, other) {
  return { rows: one.rows, columns: other.rows, data: dotProducts(one.data, other.data, one.columns) };
}

/** @param {Matrix} matrix @returns {Matrix} */
function transposed({ rows, columns, data }) {
  const turned = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) turned[column * rows + row] = data[row * columns + column];
  return { rows: columns, columns: rows, data: turned };
}

/** @param {Matrix} matrix @param {number} factor @returns {Matrix} */
function scaled({ rows, columns, data }, factor) {
  return { rows, columns, data: Float64Array.from(data, (value) => value * factor) };
}

/** Each column times its gain. @param {Matrix} matrix @param {ArrayLike<number>} gain @returns {Matrix} */
function gained({ rows, columns, data }, gain) {
  return { rows, columns, data: Float64Array.from(data, (value, at) => value * gain[at % columns]) };
}

/** Rows minus their mean, as a layer norm subtracts it. @param {import("./model.js").Config} config @param {Matrix} matrix @returns {Matrix} */
function centred(config, matrix) {
  if (config.norm_kind === "rms") return matrix;
  const { rows, columns, data } = matrix;
  const found = Float64Array.from(data);
  for (let row = 0; row < rows; row++) {
    const own = found.subarray(row * columns, (row + 1) * columns);
    const { mean } = momentsOf(own);
    for (let at = 0; at < columns; at++) own[at] -= mean;
  }
  return { rows, columns, data: found };
}

/** Some rows. @param {Matrix} matrix @param {number[]} rows @returns {Matrix} */
function chosen({ columns, data }, rows) {
  const found = new Float64Array(rows.length * columns);
  rows.forEach((row, to) => {
    for (let at = 0; at < columns; at++) found[to * columns + at] = data[row * columns + at];
  });
  return { rows: rows.length, columns, data: found };
}

/** @param {Matrix} matrix */
function asTensor({ rows, columns, data }) {
  return { shape: [rows, columns], data: Float32Array.from(data) };
}

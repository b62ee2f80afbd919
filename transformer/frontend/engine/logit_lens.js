// The residual stream as a sum, as transformer/inference/residual_stream.py reads it: the logit lens by depth, and direct
// logit attribution by part. In double precision.

import { ACTIVATIONS, capped, dotProducts, logSumExp, momentsOf, sumOf } from "../arithmetic.js";
import { isCausal } from "../attention_config.js";
import { likeliest, rankOf } from "../generation/sampling.js";
import { recomputed } from "./forward_pass.js";
import { ids, whole } from "./questions.js";
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Equation, Tensor } from "./model.js" */
/** @import { Question } from "./questions.js" */
/** @import { Recording, Tensors } from "../recording.js" */

/** @typedef {ArrayLike<number>} Vector */

/** The logit lens at one position. @param {LiveModel} live @param {Question} question @param {Record<string, any>} values @param {Rest} rest */
export async function lens(live, question, { position: asked, of = "" }, rest) {
  const position = whole("position", asked, 0, question.tokens.length - 1);
  const tokens = ids("of", of).map((id) => whole("of", id, 0, live.config.vocab_size - 1));
  const computed = await live.pass(question, rest);
  const tensors = await logitLens(live, question, computed, [position], rest);
  if (tokens.length) {
    const probabilities = heightsOf(live).map((points) => {
      const logits = logitsAt(live, computed, points, position);
      const total = logSumExp(logits);
      return tokens.map((id) => Math.exp(logits[id] - total));
    });
    tensors["lens.of"] = { shape: [probabilities.length, tokens.length], data: Float64Array.from(probabilities.flat()) };
  }
  return { tensors, metadata: { vocabulary: labelsOf(live, tensors.lens.data) } };
}

function labelsOf(live, ids) {
  return Object.fromEntries([...new Set(ids)].map((id) => [id, live.label(id)]));
}

/**
 * What each depth of the stream would have said at some positions, had the model ended there (nostalgebraist 2020); and the
 * probability and rank of the token that is right there.
 *
 * @param {LiveModel} live
 * @param {Question} question
 * @param {Map<string, Tensor>} computed
 * @param {number[]} positions
 * @param {Rest} rest
 * @returns {Promise<Tensors>}
 */
export async function logitLens(live, { tokens }, computed, positions, rest) {
  const { config, about: { card } } = live;
  const heights = heightsOf(live);
  const count = heights.length * positions.length;
  const [best, rank] = [new Int32Array(count), new Int32Array(count)];
  const [share, right] = [new Float64Array(count), new Float64Array(count).fill(NaN)];
  for (const [depth, points] of heights.entries()) {
    for (const [index, position] of positions.entries()) {
      await rest();
      const at = depth * positions.length + index;
      const logits = logitsAt(live, computed, points, position);
      const total = logSumExp(logits);
      best[at] = likeliest(logits);
      share[at] = Math.exp(logits[best[at]] - total);
      const wanted = tokens[isCausal(config) ? position + 1 : position];
      if (wanted === undefined || (!isCausal(config) && wanted === card.mask_token_id)) continue;
      right[at] = Math.exp(logits[wanted] - total);
      rank[at] = rankOf(logits, wanted);
    }
  }
  const shape = [heights.length, positions.length];
  return {
    lens: { shape, data: best }, "lens.probability": { shape, data: share },
    "lens.right": { shape, data: right }, "lens.rank": { shape, data: rank },
  };
}

/** The points that sum to the stream of a text, by depth. @param {LiveModel} live */
const heightsOf = ({ about: { stacks } }) => stacks.find((stack) => stack.tokens === "text").heights;

/** @param {LiveModel} live @param {Map<string, Tensor>} computed @param {string[]} points @param {number} position */
function logitsAt(live, computed, points, position) {
  return logitsOf(live, readOut(live, streamAt(computed, points, position, live.config.d_model)));
}

function streamAt(computed, points, position, width) {
  const sum = new Float64Array(width);
  for (const name of points) {
    const { data } = computed.get(name);
    for (let at = 0; at < width; at++) sum[at] += data[position * width + at];
  }
  return sum;
}

/** What the unembedding reads of a stream: through the last norm, and an encoder's head, where there are. @param {LiveModel} live @param {Float64Array} stream */
function readOut(live, stream) {
  const { config, about: { norms } } = live;
  const x = norms.last ? normed(live, `${config.architecture === "encoder-decoder" ? "decoder." : ""}ln_final`, stream) : stream;
  if (!config.masked_word_head) return x;
  const hidden = dotProducts(x, live.numbers("head.dense.weight"), x.length, live.numbers("head.dense.bias"));
  return normed(live, "head.ln", hidden.map(ACTIVATIONS[config.activation]));
}

/** What a norm makes of a vector with its own statistics. @param {LiveModel} live @param {string} norm @param {Float64Array} x */
function normed(live, norm, x) {
  const isRms = live.config.norm_kind === "rms";
  const { mean, variance } = momentsOf(x, !isRms);
  const spread = Math.sqrt(variance + live.config.layer_norm_eps);
  const [gain, shift] = [live.numbers(`${norm}.weight`), isRms ? null : live.numbers(`${norm}.bias`)];
  return x.map((value, at) => ((value - mean) / spread) * gain[at] + (shift?.[at] ?? 0));
}

/** @param {LiveModel} live @param {Float64Array} x */
function logitsOf(live, x) {
  const { bias } = unembedding(live).operands;
  const logits = dotProducts(x, live.numbers("unembed.weight"), x.length, bias ? live.numbers(bias[0].name) : null);
  const { cap } = live.model.equations.find(({ name }) => name === "logits").constants;
  return cap ? logits.map((logit) => capped(logit, cap)) : logits;
}

/** @param {LiveModel} live @returns {Equation} */
function unembedding({ model: { equations } }) {
  return equations.find(({ name }) => name === "unembed.hook_uncapped") ?? equations.find(({ name }) => name === "logits");
}

/**
 * Each part's share in the logit of a token at a position: the embeddings', each head's, each feed-forward layer's, every bias's.
 *
 * @param {LiveModel} live
 * @param {Question} question
 * @param {Record<string, any>} values
 * @param {Rest} rest
 * @returns {Promise<Recording>}
 */
export async function attribution(live, question, { position: asked, token: about }, rest) {
  const { config, model } = live;
  const position = whole("position", asked, 0, question.tokens.length - 1);
  const token = whole("token", about, 0, config.vocab_size - 1);
  const computed = await live.pass(question, rest);
  /** @type {Map<string, Tensor>} */
  const here = new Map(); // what is at this position
  for (const [name, { shape, data }] of computed) {
    const { dims } = model.equations.find((equation) => equation.name === name);
    if (dims[0] !== "pos" || name.startsWith("encoder.")) continue;
    const row = data.length / shape[0];
    here.set(name, { shape: [1, ...shape.slice(1)], data: data.subarray(position * row, (position + 1) * row) });
  }
  const text = { tokens: [question.tokens[position]], source: question.source };
  const table = new Map(model.equations.map((equation) => [equation.name, equation]));
  const { operands } = unembedding(live);
  const parts = sharesOf({ live, text, here, table }, operands.x.map(({ name }) => name));
  const direction = Float64Array.from(live.numbers("unembed.weight").subarray(token * config.d_model, (token + 1) * config.d_model));
  const logit = (vector) => direction.reduce((sum, value, at) => sum + value * vector[at], 0);
  const shares = parts.map(({ name, vector }) => ({ name, share: logit(vector) }));
  if (operands.bias) shares.push({ name: operands.bias[0].name, share: live.numbers(operands.bias[0].name)[token] });
  return {
    tensors: { shares: { shape: [shares.length], data: Float32Array.from(shares, ({ share }) => share) } },
    metadata: { names: shares.map(({ name }) => name) },
  };
}

function sharesOf(at, names) {
  return names.flatMap((name) => sharesOfOne(at, at.table.get(name)));
}

/** The parts of one point. What is a sum, or a norm of one, is taken apart; anything else is a part by itself. @returns {{ name: string, vector: Vector }[]} */
function sharesOfOne(at, equation) {
  const { live, text, here, table } = at;
  const { name, operation, operands } = equation;
  const terms = (operands.x ?? []).map((operand) => operand.name);
  const numbers = (role) => live.numbers(operands[role][0].name);
  if (operation === "add" && terms.every((term) => table.has(term))) return sharesOf(at, terms);
  if (operation === "normalise" || operation === "shorten") {
    const [spread] = here.get(operands.spread[0].name).data;
    const gain = numbers("gain");
    const scaled = sharesOf(at, terms).map((part) => {
      const mean = operation === "normalise" ? sumOf(part.vector) / part.vector.length : 0;
      return { ...part, vector: Float64Array.from(part.vector, (value, index) => ((value - mean) / spread) * gain[index]) };
    });
    return operation === "normalise" ? [...scaled, { name: operands.shift[0].name, vector: numbers("shift") }] : scaled;
  }
  if (operation !== "multiply") return [{ name, vector: here.get(name).data }];
  const bias = operands.bias ? { name: operands.bias[0].name, vector: numbers("bias") } : null;
  const extra = bias ? [bias] : [];
  if (!/(attn_out|attn\.hook_out)$/.test(name)) {
    const { data } = recomputed(live.model, text, here, equation);
    return [{ name, vector: bias ? data.map((value, index) => value - bias.vector[index]) : data }, ...extra];
  }
  const result = terms[0].replace("hook_z", "hook_result");
  const { shape: [, heads, width], data } = recomputed(live.model, text, here, table.get(result));
  return [...Array.from({ length: heads }, (_, head) => ({ name: `${result}[${head}]`, vector: data.subarray(head * width, (head + 1) * width) })), ...extra];
}

// A model in the browser: a checkpoint's weights, its configuration, and the table of equations that says what every
// tensor of a pass is made of (transformer/model/equations.py). It knows no architecture: all of that is in the table.

import { readSafetensors } from "../recording.js";
import { Simd } from "./simd.js";

/**
 * @typedef {import("../attention_config.js").Config & { tie_embeddings?: boolean }} Config
 * @typedef {{ name: string, dims: string[], cells: (string | number)[], shift?: number }} Operand
 * @typedef {{ name: string, operation: string, dims: string[], operands: Record<string, Operand[]>, constants: Record<string, any> }} Equation
 * @typedef {Float32Array | Float64Array} Floats in double precision where something is checked
 * @typedef {{ shape: number[], data: Floats }} Tensor row-major
 *
 * @typedef {object} Model
 * @property {Config} config
 * @property {Equation[]} equations in the order of the pass
 * @property {Map<string, Tensor>} weights by name
 * @property {Simd | null} simd what multiplies with the weights, where the browser can
 * @property {Set<string>} cached what of the text's own tensors is read at earlier positions: keys and values
 */

/**
 * A model of a checkpoint's files. An Error says what is wrong with them.
 *
 * @param {Uint8Array | ArrayBuffer} bytes model.safetensors
 * @param {Config} config config.json
 * @param {Equation[]} equations what `equations_json` makes of the configuration
 * @returns {Model}
 */
export function modelOf(bytes, config, equations) {
  const { tensors } = readSafetensors(bytes);
  const simd = Simd.for(Object.values(tensors));
  const weights = new Map(Object.entries(tensors).map(([name, tensor]) => [name, asFloats(tensor, simd)]));
  if (config.tie_embeddings) weights.set("unembed.weight", weights.get("embed.weight"));
  const computed = new Map(equations.map((equation) => [equation.name, equation]));
  for (const { name } of equations.flatMap(operandsOf)) {
    if (!computed.has(name) && !weights.has(name)) throw new Error(`The checkpoint has no weights called ${name}, which the model needs.`);
  }
  const isOfText = (name) => computed.get(name)?.dims[0] === "pos" && !isOfSource(computed.get(name));
  const keys = equations.flatMap(operandsOf).filter(({ name, dims }) => dims[0] === "key" && isOfText(name));
  return { config, equations, weights, simd, cached: new Set(keys.map(({ name }) => name)) };
}

/** All that an equation reads. @param {Equation} equation */
export function operandsOf({ operands }) {
  return Object.values(operands).flat();
}

/** Whether a tensor depends on what an encoder reads alone: then it is the same in every pass. @param {Equation} equation */
export function isOfSource({ name, dims }) {
  return name.startsWith("encoder.") || dims[0] === "key";
}

/**
 * Some tensors, what they are made of, what that is made of, and so on.
 *
 * @param {string[]} results
 * @param {Equation[]} equations
 */
export function neededFor(results, equations) {
  const needed = new Set(results);
  for (const equation of [...equations].reverse()) {
    if (needed.has(equation.name)) for (const { name } of operandsOf(equation)) needed.add(name);
  }
  return needed;
}

/**
 * Of which tensors only the last position is read, if of the logits only the last one is: in the last block, of all but keys and
 * values, and what these are made of.
 *
 * @param {Set<string>} wanted what `neededFor` gives
 * @param {Equation[]} equations
 */
export function readAtLast(wanted, equations) {
  const atAll = new Set();
  for (const equation of equations.filter(({ name }) => wanted.has(name)).reverse()) {
    for (const { name, dims } of operandsOf(equation)) if (dims[0] === "key" || atAll.has(equation.name)) atAll.add(name);
  }
  return new Set([...wanted].filter((name) => !atAll.has(name)));
}

/** @returns {Tensor} */
function asFloats({ shape, data }, simd) {
  const floats = simd?.take(data.length) ?? new Float32Array(data.length);
  floats.set(data);
  return { shape, data: floats };
}

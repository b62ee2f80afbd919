// Cuts the parts of a pass from a recording of the whole pass, in place of a server.
import { arrayKind } from "../recording.js";

/** @import { Recording, Tensor, Tensors } from "../recording.js" */
/** @import { Wanted } from "./fetcher.js" */
/** @import { Overview } from "./pass.js" */

const STEPS = ["hook_raw_scores", "hook_scaled_scores", "hook_capped_scores", "hook_attn_scores", "hook_pattern"];

/**
 * What answers for parts of a pass. Tensors that weren't recorded are left out.
 *
 * @param {Pick<Recording, "tensors">} whole
 * @param {Pick<Overview, "modules" | "names">} about
 * @param {Wanted[]} parts
 * @returns {Tensors}
 */
export function slicesOf({ tensors }, { modules, names }, parts) {
  /** @type {Tensors} */
  const slices = {};
  const take = (name, index) => {
    const tensor = name && tensors[name];
    if (tensor) slices[`${name}[${index.map((position) => position ?? ":").join(", ")}]`] = slice(tensor, index);
  };
  for (const [what, layer, head, query] of parts) {
    const [module, around] = [modules[layer], names[layer]];
    if (what === "head") {
      const heads = (tensors[around.q] ?? tensors[around.v])?.shape[1];
      take(around.q, [null, head]);
      for (const name of [around.k, around.v]) take(name, [null, Math.floor((head * tensors[name]?.shape[1]) / heads)]); // shared
      take(`${module}.relative_bias.weight`, [null, head]);
    } else {
      for (const step of STEPS) take(`${module}.${step}`, [head, query]);
      for (const name of ["hook_z", "hook_result"]) take(`${module}.${name}`, [query, head]);
      for (const name of [around.before, around.given, around.out, around.after]) take(name, [query]);
      const weight = tensors[`${module}.out.weight`];
      if (weight) {
        const [rows, columns] = weight.shape;
        const width = tensors[around.v].shape[2];
        const cutByHead = { shape: [rows, columns / width, width], data: weight.data };
        slices[`${module}.out.weight[:, ${head}]`] = slice(cutByHead, [null, head]);
      }
    }
  }
  return slices;
}

/**
 * A part of a tensor: index has a number for each of the first dimensions, null for all of one.
 *
 * @param {Tensor} tensor
 * @param {(number | null)[]} index
 * @returns {Tensor}
 */
function slice({ shape, data }, index) {
  const kept = shape.filter((_, axis) => index[axis] === undefined || index[axis] === null);
  const numbers = new (arrayKind(data))(kept.reduce((product, length) => product * length, 1));
  let at = 0;
  const walk = (axis, start) => {
    if (axis === shape.length) {
      numbers[at++] = data[start];
      return;
    }
    const step = shape.slice(axis + 1).reduce((product, length) => product * length, 1);
    const position = index[axis] ?? null;
    if (position !== null) walk(axis + 1, start + position * step);
    else for (let position = 0; position < shape[axis]; position++) walk(axis + 1, start + position * step);
  };
  walk(0, 0);
  return { shape: kept, data: numbers };
}

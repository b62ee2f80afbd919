// Answers for parts of a pass in place of a server: cuts them from a recording of the whole pass.
import { partOf, taken } from "../engine/tensor_parts.js";
import { namesOf } from "./tensor_names.js";

/** @import { Recording, Tensors } from "../recording.js" */
/** @import { Wanted } from "./fetcher.js" */
/** @import { Overview } from "./pass.js" */

/**
 * Answers for parts of a pass, without tensors that weren't recorded.
 *
 * @param {Pick<Recording, "tensors">} whole
 * @param {Overview} about
 * @param {Wanted[]} parts
 * @returns {Tensors}
 */
export function slicesOf({ tensors }, about, parts) {
  const heads = about.config.n_heads;
  const entries = /** @type {Map<string, any>} */ (new Map(Object.entries(tensors).map(([name, { shape }]) => {
    const sizes = name.endsWith(".out.weight") ? [shape[0], heads, shape[1] / heads] : shape; // its columns are the heads' parts, one after the other
    return [name, { name, sizes, dims: sizes.map(String) }];
  })));
  const there = namesOf(about, parts).filter((name) => entries.has(name.slice(0, name.indexOf("["))));
  return Object.fromEntries(there.map((name) => {
    const { entry, ranges } = partOf(name, entries);
    return [name, taken({ shape: entry.sizes, data: tensors[entry.name].data }, ranges)];
  }));
}

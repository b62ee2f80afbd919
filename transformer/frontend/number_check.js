// Checks whether a recomputed number equals the one from the model.

import { attribute, put } from "./dom.js";
import { plainNumber } from "./number_format.js";

const EQUAL = 1e-5; // of the largest absolute value: what float32 leaves open

/**
 * Say so. difference: the largest; magnitude: the largest absolute value of what is compared with; setBy: what has set
 * it, in words, where it needn't follow from what it was worked out from; rounding: by how much, relatively, neighbouring
 * numbers of the model's type differ, which is more than float32 leaves open where they are of 16 bits.
 */
export function sayCompared(badge, difference, magnitude, setBy = [], rounding = 0) {
  const equal = difference <= Math.max(EQUAL, rounding) * Math.max(magnitude, Number.MIN_VALUE);
  if (!equal && setBy.length) {
    attribute(badge, "data-state", "set");
    put(badge, `set by: ${setBy.join("; ")}`);
    return;
  }
  attribute(badge, "data-state", equal ? "equal" : "different");
  const amount = difference === 0 ? "no difference" : `difference ${plainNumber(difference, 2)}`;
  put(badge, equal ? `recomputed, equal (${amount})` : `recomputed, not equal (${amount})`);
}

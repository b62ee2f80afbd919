// Checks whether a recomputed number equals the one from the model.

import { attribute, put } from "./dom.js";
import { plainNumber } from "./numbers.js";

const EQUAL = 1e-5; // of the largest absolute value: what float32 leaves open

/**
 * Say so. difference: the largest; magnitude: the largest absolute value of what is compared with; setBy: what has set
 * it, in words, where it needn't follow from what it was worked out from.
 */
export function sayCompared(badge, difference, magnitude, setBy = []) {
  const equal = difference <= EQUAL * Math.max(magnitude, Number.MIN_VALUE);
  if (!equal && setBy.length) {
    attribute(badge, "data-state", "set");
    put(badge, `set by: ${setBy.join("; ")}`);
    return;
  }
  attribute(badge, "data-state", equal ? "equal" : "different");
  const amount = difference === 0 ? "no difference" : `difference ${plainNumber(difference, 2)}`;
  put(badge, equal ? `recomputed, equal (${amount})` : `recomputed, not equal (${amount})`);
}

// Whether a number that was worked out again is the one that the model computed.

import { attribute, put } from "./dom.js";
import { plainNumber } from "./numbers.js";

const EQUAL = 1e-5; // of the largest absolute value: what float32 leaves open

/** Say so. difference: the largest; magnitude: the largest absolute value of what is compared with. */
export function sayCompared(badge, difference, magnitude) {
  const equal = difference <= EQUAL * Math.max(magnitude, Number.MIN_VALUE);
  attribute(badge, "data-state", equal ? "equal" : "different");
  const amount = difference === 0 ? "no difference" : `difference ${plainNumber(difference, 2)}`;
  put(badge, equal ? `recomputed, equal (${amount})` : `recomputed, not equal (${amount})`);
}

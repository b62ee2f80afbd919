// Computes the formulas of interventions.json: an operation and its operands, each a formula, a number, a field, or "value".

const ARITHMETIC = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, min: Math.min, max: Math.max, or: (a, b) => a || b };

/**
 * A formula as a function of a value and what `reads` needs of its place.
 *
 * @template Place
 * @param {any} formula
 * @param {Record<string, any>} values of the intervention's fields
 * @param {Record<string, (text: number) => (value: number, place: Place) => number>} [reads] what reads something else, by operation
 * @returns {(value: number, place: Place) => number}
 */
export function compiled(formula, values, reads = {}) {
  if (formula === "value") return (value) => value;
  if (!Array.isArray(formula)) return () => (typeof formula === "string" ? values[formula] : formula);
  const [operation, ...operands] = formula;
  if (reads[operation]) return reads[operation](operands[0]);
  const [first, second] = operands.map((operand) => compiled(operand, values, reads));
  return (value, place) => ARITHMETIC[operation](first(value, place), second(value, place));
}

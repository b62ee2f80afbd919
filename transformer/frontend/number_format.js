// Formats numbers for reading.

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A number with at most `digits` significant digits and a true minus sign; −∞ and powers of ten are spelt out. */
export function plainNumber(value, digits = 4) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e6) return inPowers(value, Math.min(digits, 2));
  const decimals = Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), digits);
  return value.toFixed(decimals).replace("-", "−");
}

/** A number with as many significant digits even if it is small: for arithmetic that should add up. */
export function exactNumber(value, digits = 5) {
  const size = Math.abs(value);
  if (!(size > 0 && size < 0.1)) return plainNumber(value, digits);
  if (size >= 1e-4) return value.toPrecision(digits).replace("-", "−");
  return inPowers(value, digits);
}

/** The same as a factor of a product: in brackets if it is negative. */
export function factor(value) {
  return value < 0 ? `(${exactNumber(value)})` : exactNumber(value);
}

function inPowers(value, digits) {
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const power = [...exponent.replace("+", "")].map((sign) => (sign === "-" ? "⁻" : SUPERSCRIPTS[sign])).join("");
  return `${mantissa.replace("-", "−")} × 10${power}`;
}

/** So many of something: "1 cell", "2,000 cells", "2 queries". */
export function counted(count, what) {
  return `${count.toLocaleString("en")} ${count === 1 ? what : `${what.replace(/([^aeiou])y$/, "$1ie")}s`}`;
}

/**
 * A probability or share from 0 to 1, whole from 10% to 99%, finer at both ends: "92%", "6.4%", "0.53%", "99.95%"; "100%" is exactly 1,
 * "0%" exactly 0; a dash for what isn't known. The same rule as `percent` in pages/ui/number_format.py.
 *
 * @param {number | null | undefined} share
 */
export function percent(share) {
  if (share == null || Number.isNaN(share)) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.01) return "<0.01%";
  if (value > 99.99 && value < 100) return ">99.99%";
  const digits = (value > 0 && value < 0.995) || (value > 99 && value < 100) ? 2 : value > 0 && value < 9.95 ? 1 : 0;
  return `${(Math.floor(value * 10 ** digits + 0.5) / 10 ** digits).toFixed(digits)}%`; // halves up, as in Python
}

const ORDINALS = { 2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth" };

/** "Every third token", "One token in 12". */
export function every(step, what) {
  return ORDINALS[step] ? `Every ${ORDINALS[step]} ${what}` : `One ${what} in ${step}`;
}

// Finds the known word that somebody likely meant who typed another.

const SHORT = 3; // letters of the shortest word that is looked at: shorter ones are all alike
const LONG = 6; // letters of a word in which two slips are likely

/**
 * The known word that is spelt most like this one: one slip apart, or two in a long word; null if there is none. A slip is a letter
 * that is missing, too many, or another one, or two that have changed places.
 *
 * @param {string} typed
 * @param {string[]} known
 */
export function closestTo(typed, known) {
  const word = typed.toLowerCase();
  if (word.length < SHORT) return null;
  let [closest, least] = [null, word.length >= LONG ? 3 : 2];
  for (const other of known) {
    if (Math.abs(other.length - word.length) >= least || !/^\p{L}/u.test(other)) continue;
    const slips = slipsBetween(word, other.toLowerCase());
    if (slips > 0 && slips < least) [closest, least] = [other, slips];
  }
  return closest;
}

/** Optimal string alignment distance (Damerau 1964). @param {string} one @param {string} other */
function slipsBetween(one, other) {
  /** @type {number[][]} by the letters that are taken of both */
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      const slips = [rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (isSame ? 0 : 1)];
      if (one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) slips.push(rows[i - 2][j - 2] + 1);
      rows[i].push(Math.min(...slips));
    }
  }
  return rows[one.length][other.length];
}

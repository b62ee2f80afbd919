// The random number between 0 and 1 that decides the token at a position, given a seed: the one that NumPy's
// `default_rng((seed, position)).random()` gives, so that a text is the same wherever it is written.
// Sources: O'Neill 2014, PCG (XSL-RR 128/64); O'Neill 2015, "Developing a seed_seq alternative", which NumPy's SeedSequence
// follows.

const POOL = 4;
const MULTIPLIER = (2549297995355413924n << 64n) | 4865540595714422341n;
const wide = (value) => BigInt.asUintN(128, value);

/**
 * @param {number | bigint} seed 0 or more
 * @param {number} position of the token in the text
 */
export function randomPoint(seed, position) {
  const [high, low, streamHigh, streamLow] = seedStates([...words(seed), ...words(position)]);
  const increment = wide((((streamHigh << 64n) | streamLow) << 1n) | 1n);
  const next = (state) => wide(state * MULTIPLIER + increment);
  const state = next(next(wide(increment + ((high << 64n) | low)))); // one step to begin with, one for the number
  const folded = (state >> 64n) ^ BigInt.asUintN(64, state);
  const turn = state >> 122n;
  const bits = BigInt.asUintN(64, (folded >> turn) | (folded << ((64n - turn) & 63n)));
  return Number(bits >> 11n) / 2 ** 53;
}

/** A whole number as words of 32 bits, the lowest first; 0 is one word. */
function words(value) {
  const found = [];
  let rest = BigInt(value);
  do {
    found.push(Number(rest & 0xffffffffn));
    rest >>= 32n;
  } while (rest > 0n);
  return found;
}

/** Four numbers of 64 bits in which every bit of the entropy has a part. @param {number[]} entropy words of 32 bits */
function seedStates(entropy) {
  const hashed = hashing(0x43b0d7e5, 0x931e8875);
  const pool = Array.from({ length: POOL }, (_, at) => hashed(entropy[at] ?? 0));
  const mix = (to, value) => {
    const mixed = (Math.imul(0xca01f9dd, pool[to]) - Math.imul(0x4973f715, hashed(value))) >>> 0;
    pool[to] = (mixed ^ (mixed >>> 16)) >>> 0;
  };
  for (let from = 0; from < POOL; from++) for (let to = 0; to < POOL; to++) if (from !== to) mix(to, pool[from]);
  for (const word of entropy.slice(POOL)) for (let to = 0; to < POOL; to++) mix(to, word);
  const drawn = hashing(0x8b51f9dd, 0x58f38ded);
  const halves = Array.from({ length: 2 * POOL }, (_, at) => BigInt(drawn(pool[at % POOL])));
  return Array.from({ length: POOL }, (_, at) => (halves[2 * at + 1] << 32n) | halves[2 * at]);
}

/** A hash of words of 32 bits that is another one each time. */
function hashing(first, factor) {
  let constant = first;
  return (word) => {
    const mixed = word ^ constant;
    constant = Math.imul(constant, factor);
    const hash = Math.imul(mixed, constant);
    return (hash ^ (hash >>> 16)) >>> 0;
  };
}

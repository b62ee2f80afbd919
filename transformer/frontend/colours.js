// Colour scales for numbers; they suit light and dark themes and colour-blind readers.
// Sources: viridis (Smith and van der Walt 2015), cmocean's balance (Thyng et al. 2016).

/** The byte of a cell that is hidden; 0 to 254 stand for 0 to 1 of a colour scale. */
export const HIDDEN = 255;

/** Weights and probabilities, 0 (dark violet) to 1 (yellow), as [fraction, colour]: viridis of the
 * square root, so that 0.02 differs from 0. */
export const SEQUENTIAL = [
  [0, "#440154"], [0.012345679012345678, "#482878"], [0.04938271604938271, "#3e4989"], [0.1111111111111111, "#31688e"],
  [0.19753086419753085, "#26828e"], [0.308641975308642, "#1f9e89"], [0.4444444444444444, "#35b779"], [0.6049382716049383, "#6ece58"],
  [0.7901234567901234, "#b5de2b"], [1, "#fde725"],
];

/** Scores and encodings: blue below zero, neutral at zero (0.5), red above. */
export const DIVERGING = [
  [0, "#171c42"], [0.09090909090909091, "#293a8f"], [0.18181818181818182, "#0b66bd"], [0.2727272727272727, "#4590b9"],
  [0.36363636363636365, "#8eb5c2"], [0.45454545454545453, "#d2d8db"], [0.5, "#f1eceb"], [0.5454545454545454, "#e6d2cc"],
  [0.6363636363636364, "#d59d89"], [0.7272727272727273, "#c46548"], [0.8181818181818182, "#ac2b24"],
  [0.9090909090909091, "#780e28"], [1, "#3c0911"],
];

/** A scale of the same hues whose light colours are dark and whose dark ones are light. */
function inverted(stops) {
  return stops.map(([stop, colour]) => {
    const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const shift = 255 - Math.max(...channels) - Math.min(...channels);
    return [stop, `#${channels.map((channel) => (channel + shift).toString(16).padStart(2, "0")).join("")}`];
  });
}

/** Cells that are there, without a number: in some layers, in all. */
export const PLAIN = [[0, "#a6d0ea"], [1, "#0072b2"]];

const SCALES = { weights: SEQUENTIAL, scores: DIVERGING, dark: inverted(DIVERGING), visible: PLAIN };
const PIXELS = Object.fromEntries(Object.entries(SCALES).map(([kind, stops]) => [kind, lookupTable(stops)]));
const nameOf = (kind, isDark) => (kind === "scores" && isDark ? "dark" : kind);

/**
 * The colour scale of "weights", "scores" or cells that are "visible". On a dark page a score of zero is dark, too: cells that are
 * nearly white would be the brightest there.
 */
export function scaleOf(kind, isDark) {
  return SCALES[nameOf(kind, isDark)];
}

/** The same as `lookupTable` gives it. */
export function pixelsOf(kind, isDark) {
  return PIXELS[nameOf(kind, isDark)];
}

/** What is selected: Okabe and Ito's vermilion. */
export const SELECTED = "#d55e00";

/** [red, green, blue], 0 to 255, at a fraction from 0 to 1 of a colour scale. */
export function colourAt(stops, fraction) {
  const next = Math.max(stops.findIndex(([at]) => at >= fraction), 1);
  const [[low, from], [high, to]] = [stops[next - 1], stops[next]];
  const share = (fraction - low) / (high - low);
  return [1, 3, 5].map((at) => {
    const [a, b] = [from, to].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(a + share * (b - a));
  });
}

/** For each byte of a cell the pixel's four bytes as ImageData has them, in one number; hidden is transparent. */
export function lookupTable(stops) {
  const bytes = new Uint8Array(4 * 256);
  for (let value = 0; value < HIDDEN; value++) bytes.set([...colourAt(stops, value / (HIDDEN - 1)), 255], 4 * value);
  return new Uint32Array(bytes.buffer);
}

/** A colour scale as a CSS gradient from left to right. */
export function gradient(stops) {
  return `linear-gradient(to right, ${stops.map(([stop, colour]) => `${colour} ${100 * stop}%`).join(", ")})`;
}

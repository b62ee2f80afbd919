// Says which token the same random number selects with the current settings.
import { sameSettings } from "./sampling.js";

/**
 * token: as `GeneratedText` has it, or undefined; drawn: what its random number chooses now, null while that isn't known; chosen: the
 * settings; isNext: it isn't seen yet; isStale: it was drawn by other settings, and another is on its way. Returns { words, token },
 * token undefined where there is nothing to offer.
 */
export function resampledSentence({ token, drawn, chosen, isNext, isStale, label }) {
  if (!token || drawn === null) return { words: "" };
  const name = `“${label(drawn)}”`;
  const hasSameSettings = sameSettings(chosen, token.settings);
  if (isNext) return { words: isStale || !hasSameSettings ? "The settings have changed: the next token will be sampled again." : `Step and Generate write ${name} next.` };
  if (token.flag === "p") return { words: "This token is the prompt's: it wasn't sampled." };
  if (token.flag === "u") return { words: `How “${token.label}” was chosen is unknown: links, reloads and changes to the model keep only the text.` };
  if (token.flag === "h") {
    if (token.point === null) return { words: `“${token.label}” was chosen by hand; the random number isn't known.` };
    return drawn === token.id ? { words: `“${token.label}” was chosen by hand; the random number falls on it, too.` }
      : { words: `“${token.label}” was chosen by hand. The random number falls on ${name}.`, token: drawn };
  }
  if (hasSameSettings) return { words: drawn === token.id ? `So “${token.label}” was written.` : "" };
  if (token.settings.temperature === 0) return { words: `“${token.label}” was written at temperature 0, without a random number.` };
  if (drawn === token.id) return { words: `The settings have changed since; the same random number still falls on ${name}.` };
  return { words: `The settings have changed since: “${token.label}” was written, and the same random number now falls on ${name}.`, token: drawn };
}

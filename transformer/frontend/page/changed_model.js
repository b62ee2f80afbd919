// What the changes of a model do to the token after the prompt, in a sentence.

import { ApiError } from "../api_error.js";
import { changedSentence } from "../changes.js";
import { percent } from "../number_format.js";
import { lastOf, likeliestOf, probabilityOf } from "../what_if/distributions.js";
/** @import { Model } from "./answers.js" */
/** @import { PageText } from "./text_reading.js" */

/**
 * @param {Model} model
 * @param {PageText} text
 * @returns {Promise<{ sentence: string, overflows: boolean }>} overflows: whether the model's numbers do, so that nothing can be shown of them
 */
export async function effectOf(model, text) {
  const words = changedSentence(text.changes.split("!"));
  if (model.about.config.architecture === "encoder-only") return { sentence: words, overflows: false };
  const [changed, unchanged] = await Promise.all([text.changes, null].map((changes) => likeliest(model, text, changes)));
  if (changed === null) return { sentence: "With these changes the model's numbers overflow, so the unchanged model is shown. Turn a change off.", overflows: true };
  return { sentence: `${words} After the prompt: ${changed}; unchanged: ${unchanged}.`, overflows: false };
}

/** The likeliest token and its probability; null where the numbers overflow. */
async function likeliest(model, { tokens, source }, changes) {
  const api = model.apiOf({ tokens: tokens.join(), source: source.join() || null, changes }, { computed: () => {} });
  const recording = await api.recording("scores", { first: tokens.length }).catch((error) => {
    if (changes === null || !(error instanceof ApiError) || !error.isFinal) throw error;
    return null; // the server refuses to answer with numbers that overflow
  });
  if (recording === null) return null;
  const distribution = lastOf(recording);
  if ([...distribution.values()].some((logit) => Number.isNaN(logit))) return null;
  const [id] = likeliestOf([distribution, distribution], 1);
  return `“${recording.metadata.kinds[id]?.[0] ?? `#${id}`}” ${percent(probabilityOf(distribution, id))}`;
}

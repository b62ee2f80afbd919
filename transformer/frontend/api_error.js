// The error of a question that wasn't answered.

/** Why a question wasn't answered, in a sentence. parameter: the one that was wrong; isFinal: asking again is no use. */
export class ApiError extends Error {
  /** @type {string} */ parameter;
  /** @type {boolean} */ isFinal;

  constructor(sentence, { parameter = "", isFinal = true } = {}) {
    super(sentence);
    Object.assign(this, { parameter, isFinal });
  }
}

/** "names can't be used: …" @param {string} parameter @param {string} problem */
export function wrong(parameter, problem) {
  return new ApiError(`${parameter} can't be used: ${problem.replace(/\.$/, "")}.`, { parameter });
}

/** What a reader is told of an error. One that isn't an ApiError is the page's own, or comes of a browser that lacks something. */
export function sentenceOf(error) {
  if (error instanceof ApiError) return error.message;
  return `Something on this page has failed (${error?.message ?? error}). Reload it, or open it in a newer browser.`;
}

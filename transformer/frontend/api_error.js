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

// Fetches a small model from the server, opens it in a worker of this tab, and compares what it computes with the engine's
// numbers.

import { Api } from "./api.js";
import { ApiError } from "./api_error.js";
import { deviationInWords, deviationOf } from "./engine_deviation.js";
import { LocalApi, LocalEngine, workerOfApp } from "./local_api.js";
/** @import { Parameters } from "./api.js" */

const MOST_OFF = 1e-4; // of the largest number: what is further from the engine's isn't this model
const GOES_ON = "Your browser couldn't compute this. The server goes on.";

/** @typedef {{ engine: LocalEngine, apiOf: (about: Parameters) => BackedApi, inWords: (isAlone: boolean) => string }} BrowserModel */

/** Asks a model in this browser that the server stands behind: what it can't answer, the server is asked for. */
export class BackedApi extends LocalApi {
  hasFailed = false;

  get isThere() {
    return !this.hasFailed && !this.engine.problem;
  }

  async question(path, values, options) {
    try {
      return await super.question(path, values, options);
    } catch {
      this.hasFailed = true;
      throw new ApiError(GOES_ON, { isFinal: false });
    }
  }
}

/**
 * The model that questions are about. Rejects with an Error that says why this browser doesn't compute it.
 *
 * @param {Parameters} about has its name and version
 * @param {string | null} token of an own model
 * @returns {Promise<BrowserModel>}
 */
export async function openModel({ model, version }, token) {
  const api = new Api({ model, version }, { token });
  const [sample, weights] = await Promise.all([
    api.recording("description"),
    api.ask("weights", {}, { read: "arrayBuffer" }),
  ]);
  const engine = new LocalEngine(workerOfApp, { weights, about: sample.metadata.about });
  try {
    await engine.ready;
    const { tokens, source } = sample.metadata;
    const asked = { tokens: tokens.join(), source: source.join() || null, names: Object.keys(sample.tensors) };
    const deviation = deviationOf(await new LocalApi(asked, engine).recording("tensors"), sample);
    if (!(deviation <= MOST_OFF)) throw new Error(`Its numbers differ from the engine's by ${deviation} of the largest.`);
    const who = { true: "Computed in your browser.", false: "Computed on the server at first, from now on in your browser." };
    const words = deviationInWords(deviation, tokens.length + source.length);
    return { engine, apiOf: (about) => new BackedApi(about, engine), inWords: (isAlone) => `${who[String(isAlone)]} ${words}` };
  } catch (error) {
    engine.end();
    throw error;
  }
}

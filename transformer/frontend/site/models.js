// Opens the models of a site or of a file: weights, tokenizer, card, and what is known of them, in a worker of their own.

import { ApiError } from "../api_error.js";
import { tokenizerFrom } from "../engine/tokenizer.js";
import { LocalApi, LocalEngine, workerOfText } from "../local_api.js";
/** @import { AboutModel } from "../engine/live_model.js" */

/**
 * @typedef {object} Card
 * @property {string} title
 * @property {string} summary
 * @property {string[]} examples
 * @property {{ layer: number, head: number, attention: string } | null} opening
 *
 * @typedef {object} OpenedModel
 * @property {string} name
 * @property {AboutModel} about
 * @property {Card} card
 * @property {ReturnType<typeof tokenizerFrom>} tokenizer
 * @property {LocalEngine} engine
 *
 * @typedef {(name: string) => Promise<{ weights: ArrayBuffer | string, about: AboutModel, card: Card, tokenizer: any }>} Load
 */

/** As a <link rel="preload" as="fetch"> asks: a browser that finds another mode fetches the file a second time. */
const AS_PRELOADED = /** @type {const} */ ({ mode: "no-cors", credentials: "include" });
const AWAY = "This model can't be fetched. If you are offline: pick it once while you are online, and it is there from then on.";

/** Of a site: files below its address. @type {Load} */
export async function fetched(name) {
  const at = new URL(`models/${name}/`, document.baseURI);
  const [described, weights] = await Promise.all([fetchedFile(new URL("model.json", at), "json"), fetchedFile(new URL("model.safetensors", at), "arrayBuffer")]);
  return { ...described, weights };
}

/** @param {URL} address @param {"json" | "arrayBuffer" | "text"} kind what to read of it @returns {Promise<any>} */
async function fetchedFile(address, kind) {
  const response = await fetch(address, AS_PRELOADED).catch(() => null);
  const read = response?.ok ? await response[kind]().catch(() => null) : null;
  if (read === null) throw new ApiError(AWAY);
  return read;
}

/** Of a file: what lies in its elements. @type {Load} */
export async function embeddedModel(name) {
  const { described, weights } = JSON.parse(document.getElementById(`model-${name}`).textContent);
  return { ...described, weights };
}

/** Of a site its file: a host may allow no other worker. Of a file, what lies in its element. */
function beginWorker() {
  const held = document.getElementById("worker");
  return held ? workerOfText(held.textContent) : new Worker(new URL("scripts/worker.js", document.baseURI));
}

/** Holds one model at a time. */
export class Models {
  /** @param {Load} load */
  constructor(load) {
    this.load = load;
    /** @type {{ name: string, opening: Promise<OpenedModel> } | null} */
    this.held = null;
  }

  /** Rejects with an ApiError. @param {string} name @returns {Promise<OpenedModel>} */
  open(name) {
    if (this.held?.name === name) return this.held.opening;
    this.held?.opening.then(({ engine }) => engine.end(), () => {});
    const opening = this.begin(name);
    this.held = { name, opening };
    opening.catch(() => this.held?.opening === opening && (this.held = null));
    return opening;
  }

  async begin(name) {
    const loading = this.load(name);
    const engine = new LocalEngine(beginWorker, loading);
    try {
      const { about, card, tokenizer } = await loading;
      if (engine.problem) throw engine.problem;
      await engine.ready;
      const readsNames = about.card.mask_token_id !== null;
      return { name, about, card, tokenizer: tokenizerFrom(tokenizer, { readsNames }), engine };
    } catch (error) {
      engine.end();
      throw error;
    }
  }
}

/** @param {OpenedModel} model @param {import("../api.js").Parameters} request @returns {any} of the same use as `Api` */
export function apiOf({ engine }, request) {
  return new LocalApi(request, engine);
}

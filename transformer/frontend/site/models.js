// Opens the models of a site or of a file in a worker of this tab: weights, tokenizer, card, and what is known of them.

import { ApiError } from "../api_error.js";
import { LocalApi, LocalEngine, workerOfText } from "../local_api.js";
import { readWith, tokenizerOf } from "../page/text_reading.js";
/** @import { Answers, Card, Model } from "../page/answers.js" */
/** @import { AboutModel } from "../engine/live_model.js" */

/** @typedef {(name: string) => Promise<{ weights: ArrayBuffer | string, about: AboutModel, card: Card, tokenizer: any }>} Load */

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

/** Holds one model at a time. @implements {Answers} */
export class Models {
  /** @param {Load} load */
  constructor(load) {
    this.load = load;
    /** @type {{ name: string, opening: Promise<Model & { engine: LocalEngine }> } | null} */
    this.opened = null;
  }

  /** Rejects with an ApiError. @param {string} name */
  open(name) {
    if (this.opened?.name === name) return this.opened.opening;
    this.opened?.opening.then(({ engine }) => engine.end(), () => {});
    const opening = this.begin(name);
    this.opened = { name, opening };
    opening.catch(() => this.opened?.opening === opening && (this.opened = null));
    return opening;
  }

  async begin(name) {
    const loading = this.load(name);
    const engine = new LocalEngine(beginWorker, loading);
    try {
      const { about, card, tokenizer: json } = await loading;
      if (engine.problem) throw engine.problem;
      await engine.ready;
      const tokenizer = tokenizerOf(json, about);
      return { name, version: null, isOwn: false, about, card, engine, read: (text, _, newWords) => readWith(tokenizer, text, newWords), apiOf: (request) => /** @type {any} */ (new LocalApi(request, engine)) };
    } catch (error) {
      engine.end();
      throw error;
    }
  }
}

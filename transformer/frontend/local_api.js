// Requests answers from a model in this browser, as api.js does from a server: instruments needn't know which one they ask. A
// worker computes them, and the page's thread stays free.

import { ApiError } from "./api_error.js";
import { anyOf } from "./signals.js";
import { turn } from "./turn.js";
/** @import { Parameters, StreamEvent } from "./api.js" */
/** @import { AboutModel } from "./engine/live_model.js" */
/** @import { Recording } from "./recording.js" */

const NO_WORKER = "This browser can't compute the model itself: it runs no workers, or the page's host forbids them. Open the page in another one.";
const TOO_OLD = "This browser can't compute the model itself. Open the page in a newer one.";
const ENDED = "The browser has ended what computes this model. Reload the page.";
const LOOK_MS = 4000; // between two looks whether a worker that is waited for is still there

/** In the app, which serves the worker's script with all that it imports as one file (pages/ui/components/assets.py). */
export function workerOfApp() {
  return new Worker(new URL("./engine/worker_bundle.js", import.meta.url));
}

/** In a file, which has only itself: a worker of its bundled text. @param {string} script */
export function workerOfText(script) {
  return new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
}

/** @typedef {{ weights: ArrayBuffer | Uint8Array | string, about: AboutModel }} HeldModel weights: model.safetensors, or that in base64 */

/** A model in a worker. */
export class LocalEngine {
  /**
   * @param {() => Worker} begin makes the worker
   * @param {HeldModel | Promise<HeldModel>} model while it is on its way, nothing can be asked
   */
  constructor(begin, model) {
    /** @type {Map<number, { take: (reply: any) => void, fail: (error: ApiError) => void }>} */
    this.waiting = new Map();
    this.asked = 0;
    this.isOpen = false;
    this.isSilent = false;
    /** @type {ReturnType<typeof setInterval> | null} */
    this.watching = null;
    try {
      this.worker = begin();
    } catch {
      this.problem = new ApiError(NO_WORKER); // some browsers know none, and some let a file have none
      return;
    }
    this.worker.addEventListener("message", ({ data }) => this.receive(data));
    this.worker.addEventListener("error", ({ message }) => this.break(new ApiError(message ? `${TOO_OLD} (${message})` : NO_WORKER)));
    const open = ({ weights, about }) => this.ask({ open: { weights, about } });
    /** Resolved once the model can be asked; rejected with why it can't. @type {Promise<void>} */
    this.ready = model instanceof Promise ? model.then(open) : open(model);
    this.ready.then(() => (this.isOpen = true), (error) => (this.problem ??= error));
  }

  /**
   * What the worker makes of a message; rejects with an ApiError, or, once nobody waits any more, never settles. tell: is told
   * events that come before.
   *
   * @param {object} message
   * @param {{ signal?: AbortSignal | null, tell?: (event: string, data: object) => void }} [options]
   * @returns {Promise<any>}
   */
  ask(message, { signal = null, tell = () => {} } = {}) {
    const id = (this.asked += 1);
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return;
      if (this.problem) {
        reject(this.problem);
        return;
      }
      const over = () => {
        this.forget(id);
        this.worker.postMessage({ id, isOver: true });
      };
      const done = (settle) => (value) => {
        this.forget(id);
        signal?.removeEventListener("abort", over);
        settle(value);
      };
      const take = ({ event, data, result }) => (event ? tell(event, data) : done(resolve)(result));
      this.waiting.set(id, { take, fail: done(reject) });
      signal?.addEventListener("abort", over);
      this.worker.postMessage({ id, ...message });
      if (this.isOpen) this.watch(); // until then its scripts may be on their way
    });
  }

  /** See that the worker is there while something is waited for: one that a browser has ended says nothing of it. */
  watch() {
    this.watching ??= setInterval(() => {
      if (this.isSilent) {
        this.break(new ApiError(ENDED));
        return;
      }
      this.isSilent = true;
      this.worker.postMessage({ isThere: true });
    }, LOOK_MS);
  }

  forget(id) {
    this.waiting.delete(id);
    if (this.waiting.size) return;
    clearInterval(this.watching);
    this.watching = null;
  }

  receive({ id, error, ...reply }) {
    this.isSilent = false;
    const waiting = this.waiting.get(id);
    if (error) waiting?.fail(new ApiError(error.sentence, { parameter: error.parameter }));
    else waiting?.take(reply);
  }

  /** Compute nothing any more, for a reason that is told to who waits. @param {ApiError} problem */
  break(problem) {
    this.problem ??= problem;
    this.worker?.terminate();
    for (const { fail } of [...this.waiting.values()]) fail(this.problem);
  }

  /** The same, without a word: nobody waits any more. */
  end() {
    this.worker?.terminate();
    this.problem = new ApiError("This model isn't held any more.");
  }
}

/** Of the same use as `Api`. */
export class LocalApi {
  /** @type {Parameters} */ about;
  /** @type {string | null} */ token = null;
  /** @type {LocalEngine} */ engine;

  /**
   * @param {Parameters} about what every question has: tokens, source, changes, begin
   * @param {LocalEngine} engine
   */
  constructor(about, engine) {
    Object.assign(this, { about, engine });
    this.ending = new AbortController();
  }

  /** Ask nothing more, and compute nothing more for it. */
  end() {
    this.ending.abort();
  }

  /** @param {string} path @param {Parameters} [values] @returns {Promise<Recording>} */
  async recording(path, values) {
    const found = await this.question(path, values);
    await turn(); // to take in a large answer, and to draw it, are two tasks of the page's thread
    return found;
  }

  /** @param {string} path @param {Parameters} [values] */
  json(path, values) {
    return this.question(path, values);
  }

  /**
   * Yields events as the worker sends them, until `signal` is aborted. Throws an ApiError for what ends them before.
   *
   * @param {string} path
   * @param {Parameters} [values]
   * @param {{ signal?: AbortSignal | null }} [options]
   * @returns {AsyncGenerator<StreamEvent>}
   */
  async *stream(path, values = {}, { signal = null } = {}) {
    const stopped = new AbortController();
    /** @type {StreamEvent[]} */
    const events = [];
    let isOver = false;
    let wake = /** @type {(value?: any) => void} */ (() => {});
    const tell = (event, data) => {
      events.push({ event, data });
      wake();
    };
    const over = () => {
      isOver = true;
      wake();
    };
    const answered = this.question(path, values, { signal: stopped.signal, tell });
    answered.then(over, over);
    signal?.addEventListener("abort", over);
    try {
      while (!signal?.aborted) {
        if (events.length) yield events.shift();
        else if (isOver) return await answered;
        else await new Promise((resolve) => (wake = resolve));
      }
    } finally {
      stopped.abort();
    }
  }

  question(path, values, { signal = null, tell = undefined } = {}) {
    const signals = anyOf([this.ending.signal, ...(signal ? [signal] : [])]);
    return this.engine.ask({ path, values: { ...this.about, ...values } }, { signal: signals, tell });
  }
}

// Holds a model and answers what messages ask of it, several at a time: what a worker does. Messages are { id, open: { weights,
// about } }, { id, path, values }, { id, isOver } or { isThere }; replies { id, result }, { id, event, data }, { id, error } or {}.

import { ApiError } from "../api_error.js";
import { turn } from "../turn.js";
import { answer } from "./answers.js";
import { Abandoned, LiveModel } from "./live_model.js";

const TURN_MS = 8; // after which others have their turn: another question, or the message that nobody waits any more

/** @typedef {{ id: number, open?: { weights: ArrayBuffer | Uint8Array | string, about: any }, path?: string, values?: Record<string, any>, isOver?: boolean, isThere?: boolean }} Message */

export class Service {
  /** @param {(reply: object) => void} send */
  constructor(send) {
    this.send = send;
    this.since = performance.now();
    /** @type {Set<number>} */
    this.waiting = new Set(); // questions that somebody waits for
    /** @type {LiveModel | null} */
    this.live = null;
  }

  /** @param {Message} message */
  async receive({ id, open, path, values, isOver, isThere }) {
    if (isThere) {
      this.send({});
      return;
    }
    if (isOver) {
      this.waiting.delete(id);
      return;
    }
    this.waiting.add(id);
    try {
      const result = open ? this.open(open) : await this.ask(id, path, values);
      if (this.waiting.has(id)) this.send({ id, result });
    } catch (error) {
      if (error instanceof Abandoned) return;
      const { message, parameter } = error instanceof ApiError ? error : new ApiError(`The browser can't compute this: ${/** @type {Error} */ (error).message}`);
      this.send({ id, error: { sentence: message, parameter } });
    } finally {
      this.waiting.delete(id);
    }
  }

  open({ weights, about }) {
    try {
      this.live = new LiveModel(typeof weights === "string" ? bytesOf(weights) : weights, about);
    } catch (error) {
      this.problem = error;
      throw error;
    }
    return null;
  }

  ask(id, path, values) {
    if (this.problem) throw this.problem;
    const rest = () => this.rest(id);
    const tell = (event, data) => this.waiting.has(id) && this.send({ id, event, data });
    return answer(this.live, path, values, { rest, tell });
  }

  async rest(id) {
    if (performance.now() - this.since > TURN_MS) {
      await turn();
      this.since = performance.now();
    }
    if (!this.waiting.has(id)) throw new Abandoned();
  }
}

/** What base64 stands for: here, as on the page's thread megabytes of it would take too long. */
function bytesOf(base64) {
  let text;
  try {
    text = atob(base64);
  } catch {
    throw new ApiError("This model's file can't be read: it is damaged.");
  }
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

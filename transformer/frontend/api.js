// Requests answers from the engine over HTTP (transformer/api). The URL of a request contains everything its answer depends on.

import { ApiError } from "./api_error.js";
import { readRecording } from "./recording.js";
import { anyOf } from "./signals.js";
/** @import { Recording } from "./recording.js" */

/**
 * @typedef {Record<string, string | number | boolean | null | undefined | (string | number)[]>} Parameters of a question
 * @typedef {{ event: string, data: any }} StreamEvent its numbers are in typed arrays
 */

const LONGEST_ADDRESS = 7_500; // characters of parameters; what is longer is sent as a body
const TRIES = 3; // of a question that couldn't be answered for want of a connection, or of room
const PAUSE_MS = 700; // before it is asked again, and twice that before the third time
const REPLACED = 409; // the status of a question to a version of a model that another has replaced
const OWN_HEADER = "HeadsUp-Model";
const AWAY = "The server can't be reached just now. What is missing here comes when it is back.";
const BROKEN = "The connection has broken off. Writing goes on when it is back.";
const PACKED = ["logits", "row"]; // of a token: float32 numbers in base64

/** Parameters as an address has them: values that are null or undefined are left out, a list is several of one name. */
export function parametersOf(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given(values))) {
    for (const item of Array.isArray(value) ? value.filter(isGiven) : [value]) query.append(name, String(item));
  }
  return query.toString().replaceAll("%2C", ","); // which every server takes as it is
}

/** What comes over the network; an ApiError where the connection fails. Any other error is the page's own. */
function connected(coming) {
  return coming.catch(() => {
    throw new ApiError(AWAY, { isFinal: false });
  });
}

const isGiven = (value) => value !== null && value !== undefined;

/** The values that are given: a body says the same as an address. */
function given(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => isGiven(value)));
}

export class Api {
  /** @type {Parameters} */ about;
  /** @type {string | null} */ token;
  /** @type {URL} */ base;

  /**
   * @param {Parameters} about what every question has: model, version, tokens, …
   * @param {{ token?: string | null, base?: URL, replaced?: (() => void) | null }} [options] token: of an own model; base: where the API
   *   is; replaced: told that the model has another version by now: who asks goes on with that, and gets no answer here
   */
  constructor(about, { token = null, base = new URL("api/", document.baseURI), replaced = null } = {}) {
    Object.assign(this, { about, token, base });
    this.replaced = replaced;
    this.ending = new AbortController();
  }

  /** Ask nothing more, and wait for no answer. */
  end() {
    this.ending.abort();
  }

  /** The address of a question: for a link, or to be fetched. */
  address(path, values = {}) {
    return new URL(`${path}?${parametersOf({ ...this.about, ...values })}`, this.base);
  }

  /**
   * Rejects with an ApiError, or, once it has ended or its model was replaced, never settles.
   *
   * @param {string} path
   * @param {Parameters} [values]
   * @returns {Promise<Recording>}
   */
  async recording(path, values) {
    return readRecording(await this.ask(path, values, { read: "arrayBuffer" }));
  }

  async json(path, values) {
    return this.ask(path, values, { read: "json" });
  }

  /**
   * Yields the events of a stream. Throws an ApiError for an event `error`, and where the connection breaks off.
   *
   * @param {string} path
   * @param {Parameters} [values]
   * @param {{ tries?: number, signal?: AbortSignal | null }} [options] as `ask` has them
   * @returns {AsyncGenerator<StreamEvent>}
   */
  async *stream(path, values, options) {
    yield* eventsOf(await this.ask(path, values, options));
  }

  /**
   * The response to a question, or what its method `read` gives, asked again where that may help. signal: ends it, too.
   *
   * @param {string} path
   * @param {Parameters} [values]
   * @param {{ read?: "arrayBuffer" | "json" | null, tries?: number, signal?: AbortSignal | null }} [options]
   */
  async ask(path, values = {}, { read = null, tries = TRIES, signal = null } = {}) {
    const signals = [this.ending.signal, ...(signal ? [signal] : [])];
    for (let tried = 1; ; tried++) {
      try {
        const response = await this.askOnce(path, values, anyOf(signals));
        return read ? await connected(response[read]()) : response;
      } catch (error) {
        if (signals.some(({ aborted }) => aborted)) return new Promise(() => {}); // nobody waits for it any more
        if (!(error instanceof ApiError) || error.isFinal || tried >= tries) throw error;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * 2 ** (tried - 1)));
      }
    }
  }

  async askOnce(path, values, signal) {
    const headers = this.token ? { [OWN_HEADER]: this.token } : {};
    const address = this.address(path, values);
    const response = await connected(address.search.length <= LONGEST_ADDRESS
      ? fetch(address, { headers, signal })
      : fetch(new URL(path, this.base), { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, signal, body: JSON.stringify(given({ ...this.about, ...values })) }));
    if (response.ok) return response;
    if (response.status === REPLACED && this.replaced) {
      this.replaced();
      return new Promise(() => {});
    }
    const { error, parameter } = await response.json().catch(() => ({}));
    throw new ApiError(error ?? `The server answered with ${response.status}.`, { parameter, isFinal: response.status < 500 && response.status !== 429 });
  }
}

/** The same of a response's body (https://html.spec.whatwg.org/multipage/server-sent-events.html). @returns {AsyncGenerator<StreamEvent>} */
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(() => {
        throw new ApiError(BROKEN, { isFinal: false });
      });
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
        const data = JSON.parse(fields.data, fields.event === "token" ? unpacked : undefined);
        if (fields.event === "error") throw new ApiError(data.error, { parameter: data.parameter, isFinal: data.retry_after === undefined });
        yield { event: fields.event, data };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function unpacked(name, value) {
  return PACKED.includes(name) ? new Float32Array(Uint8Array.from(atob(value), (character) => character.charCodeAt(0)).buffer) : value;
}

// Reads server-sent events from a streaming response.
import { ApiError } from "../api_error.js";

const BROKEN = "The connection has broken off. Writing goes on when it is back.";

/** Yields { event, data } of a response's body, data parsed as JSON. Throws an ApiError for an event `error`, and where the connection breaks off. */
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((error) => {
        throw error instanceof ApiError ? error : new ApiError(BROKEN, { isFinal: false });
      });
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
        const data = JSON.parse(fields.data);
        if (fields.event === "error") throw new ApiError(data.error, { parameter: data.parameter, isFinal: data.retry_after === undefined });
        yield { event: fields.event, data };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The float32 numbers that an event has in base64. */
export function floatsOf(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

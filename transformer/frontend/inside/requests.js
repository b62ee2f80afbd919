// Requests the parts of a pass and converts the answers to what `InsidePass` takes.
import { countOf } from "../recording.js";
/** @import { Api } from "../api.js" */
/** @import { Recording } from "../recording.js" */
/** @import { Wanted } from "./fetcher.js" */
/** @import { InsidePass } from "./pass.js" */

const MOST_CELLS = 2_000_000; // of the tensors of one question; the first may have more
const MOST_NAMES = 64;

/**
 * Ask for parts. Returns a promise of one recording of all, as `InsidePass.add` takes it; of tensors beyond what one answer holds
 * there is nothing in it, and they may be asked for again.
 *
 * @param {Api} api
 * @param {InsidePass} pass
 * @param {Wanted[]} parts
 * @returns {Promise<Recording>}
 */
export async function requestParts(api, pass, parts) {
  const named = new Map(); // by the name that is asked for, what the pass calls it
  let cells = 0;
  for (const [what, name, which] of parts) {
    if (!(what in INDEX)) continue;
    const { dims, sizes } = pass.describe(name);
    const index = INDEX[what](dims, which);
    const size = countOf(sizes.filter((_, axis) => index[axis] === undefined || index[axis] === ":"));
    if (named.size && (cells + size > MOST_CELLS || named.size >= MOST_NAMES)) continue;
    cells += size;
    named.set(index.length ? `${name}[${index.join(", ")}]` : name, what === "tensor" ? name : `${name}[${which}]`);
  }
  const questions = parts.filter(([what]) => what in OTHERS).map(([what, ...rest]) => OTHERS[what](api, ...rest));
  if (named.size) questions.unshift(api.recording("tensors", { names: [...named.keys()] }).then((recording) => renamed(recording, (name) => named.get(name))));
  return joined(await Promise.all(questions));
}

const INDEX = {
  tensor: () => [],
  slice: (dims, head) => [...Array(dims.indexOf("head")).fill(":"), head],
  row: (dims, position) => [position],
};

const OTHERS = {
  lens: async (api, position) => renamed(await api.recording("lens", { position }), (name) => `${name}[${position}]`),
  attribution: async (api, position, token) => {
    const { tensors, metadata } = await api.recording("attribution", { position, token });
    return { tensors: { [`attribution[${position}, ${token}]`]: tensors.shares }, metadata: { attribution: metadata } };
  },
  checks: async (api) => ({ tensors: {}, metadata: await api.json("checks") }),
  // A circuit is the weights' alone, whatever is read and changed.
  circuit: (api, kind, attention, head) => api.recording("circuit", { kind, attention, head, source: null, changes: null, begin: null }),
};

function renamed({ tensors, metadata }, newName) {
  return { metadata, tensors: Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => [newName(name), tensor])) };
}

function joined(recordings) {
  const vocabulary = Object.assign({}, ...recordings.map(({ metadata }) => metadata.vocabulary));
  return {
    tensors: Object.assign({}, ...recordings.map(({ tensors }) => tensors)),
    metadata: { ...Object.assign({}, ...recordings.map(({ metadata }) => metadata)), vocabulary },
  };
}

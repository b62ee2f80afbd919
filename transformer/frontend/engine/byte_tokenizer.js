// Reads byte-level BPE (Sennrich et al. 2016, Radford et al. 2019) as transformer/data/tokenizers.py does: a text's bytes, of which
// neighbours are merged in the order in which training merged them. Every text can be read.

import { UnknownTokenError, loneSurrogates, notRead, printable } from "./token_text.js";

/** The pieces within which bytes are merged: GPT-2's pattern. */
const PIECES = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const REMEMBERED = 4096; // the most pieces whose tokens are kept
const MOST_TOKENS = 2 ** 21; // of a vocabulary, so that a pair of them is one number
/** The letter that stands for each byte in a vocabulary: its own where it can be seen, else one that can. */
const LETTERS = (() => {
  let next = 256;
  const isSeen = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isSeen(byte) ? byte : next++));
})();
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));

export class ByteTokenizer {
  newWords = []; // it has no place for new words, and needs none
  limit = "";

  /** @param {any} json a tokenizer.json whose model is BPE */
  constructor({ model, normalizer, pre_tokenizer: cut, decoder, added_tokens: added, post_processor: around }) {
    if (normalizer) throw notRead(`a normalizer of the type ${normalizer.type}`);
    if (cut?.type !== "ByteLevel" || cut.add_prefix_space || cut.use_regex === false) throw notRead(`a pre-tokenizer of the type ${cut?.type}`);
    if (decoder?.type !== "ByteLevel") throw notRead(`a decoder of the type ${decoder?.type}`);
    if (around) throw notRead(`a post-processor of the type ${around.type}`);
    if (model.dropout || model.byte_fallback || model.ignore_merges) throw notRead("BPE of another kind");
    /** @type {Map<string, number>} */
    this.ids = new Map(Object.entries(model.vocab));
    if (LETTERS.some((letter) => !this.ids.has(letter))) throw notRead("bytes without a token");
    /** @type {Map<string, number>} */
    this.special = new Map(added.map(({ content, id }) => [content, id]));
    this.tokens = new Map([...this.ids, ...this.special].map(([token, id]) => [id, token]));
    this.bytes = LETTERS.map((letter) => this.ids.get(letter)); // the token of each
    /** @type {[string, string][]} */
    const merges = model.merges.map((pair) => (Array.isArray(pair) ? pair : pair.split(" ")));
    this.made = merges.map(([one, other]) => this.ids.get(one + other)); // by the rank of their merge
    this.ranks = new Map(merges.map(([one, other], rank) => [this.ids.get(one) * MOST_TOKENS + this.ids.get(other), rank]));
    /** @type {Map<string, number[]>} */
    this.known = new Map();
  }

  get vocabSize() {
    return Math.max(-1, ...this.tokens.keys()) + 1;
  }

  withNewWords() {
    return this;
  }

  /** Token ids of a text. UnknownTokenError for half a character. @param {string} text @returns {number[]} */
  encode(text) {
    const unknown = this.unknownPieces(text);
    if (unknown.length) throw new UnknownTokenError(unknown);
    return (text.match(PIECES) ?? []).flatMap((piece) => this.idsOf(piece));
  }

  /** @param {string} text */
  unknownPieces(text) {
    return loneSurrogates(text);
  }

  /** @param {string} piece @returns {number[]} */
  idsOf(piece) {
    const known = this.known.get(piece);
    if (known) return known;
    const ids = this.merged(Array.from(new TextEncoder().encode(piece), (byte) => this.bytes[byte]));
    if (this.known.size < REMEMBERED) this.known.set(piece, ids);
    return ids;
  }

  /** Merge the pair that was merged first in training, wherever it stands, until none is left that was. @param {number[]} ids */
  merged(ids) {
    const rankAt = (at) => (at >= 0 && at + 1 < ids.length ? this.ranks.get(ids[at] * MOST_TOKENS + ids[at + 1]) : null) ?? Infinity;
    const ranks = ids.map((_, at) => rankAt(at)); // of each token with the next one
    for (;;) {
      const first = ranks.reduce((least, rank) => Math.min(least, rank), Infinity);
      if (first === Infinity) return ids;
      const changed = [];
      let to = 0;
      for (let at = 0; at < ids.length; at++, to++) {
        const joins = ranks[at] === first;
        ids[to] = joins ? this.made[first] : ids[at];
        ranks[to] = ranks[at];
        if (joins) {
          changed.push(to);
          at += 1;
        }
      }
      ids.length = ranks.length = to;
      for (const at of changed) for (const place of [at - 1, at]) if (place >= 0) ranks[place] = rankAt(place);
    }
  }

  /** The text that these ids write, without special tokens. @param {Iterable<number>} ids */
  decode(ids) {
    const letters = Array.from(ids, (id) => this.tokens.get(id)).filter((token) => token !== undefined && !this.special.has(token)).join("");
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(letters));
  }

  /** A token as it can be read in a chart; ⟨E2⟩ for part of a character. @param {number} id */
  label(id) {
    const token = this.tokens.get(id);
    if (token === undefined) return `#${id}`;
    return this.special.has(token) ? printable(token) : labelOf(bytesOf(token));
  }

  /** @param {Iterable<number>} ids */
  labels(ids) {
    return Array.from(ids, (id) => this.label(id));
  }
}

/** @param {string} letters */
function bytesOf(letters) {
  return Uint8Array.from(letters, (letter) => BYTES.get(letter));
}

/** @param {Uint8Array} bytes */
function labelOf(bytes) {
  const parts = [];
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const character = characterAt(bytes, at);
    if (character === null) {
      parts.push(printable(text), `⟨${bytes[at].toString(16).toUpperCase().padStart(2, "0")}⟩`);
      text = "";
      at += 1;
    } else {
      text += character;
      at += new TextEncoder().encode(character).length;
    }
  }
  return [...parts, printable(text)].join("");
}

/** The character that begins at a byte; null where none does. @param {Uint8Array} bytes @param {number} at */
function characterAt(bytes, at) {
  const length = bytes[at] < 0x80 ? 1 : bytes[at] >= 0xf0 ? 4 : bytes[at] >= 0xe0 ? 3 : 2;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(at, at + length));
  } catch {
    return null;
  }
}

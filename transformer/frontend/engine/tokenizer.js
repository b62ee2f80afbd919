// Reads a shipped model's tokenizer.json and encodes and decodes as transformer/data/tokenizers.py does: one token a
// character, a word, or a word or sign of a sentence. A text is never dropped in part: what the vocabulary lacks is named.

import { ByteTokenizer } from "./byte_tokenizer.js";
import { UnknownTokenError, loneSurrogates, notRead, printable } from "./token_text.js";
/** @import { UnknownPiece } from "./token_text.js" */

/**
 * @typedef {(text: string) => string} Normalize
 * @typedef {(pieces: UnknownPiece[]) => UnknownPiece[]} Cut what was cut already into smaller pieces
 */

const WORD = "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
const WORDS = new RegExp(`${WORD}+`, "gu");
const WHOLE_WORD = new RegExp(`^\\\\b(${WORD}+)\\\\b$`, "u"); // a pattern that looks for a word, and not for a part of one
const PUNCTUATION = /[\p{P}$+<=>^`|~]/u; // the last are signs of ASCII that Unicode files elsewhere
const WHITE_SPACE = /\p{White_Space}+/gu;
const JOINS = /^[\p{M}\u1161-\u1175\u11a8-\u11c2]/u; // a mark, or a later letter of a Korean syllable
const IS_WORD = /[\p{L}\p{N}\p{S}]/u;
const newWord = (number) => `[new${number}]`; // what a vocabulary calls the places that it keeps for new words, from 1
/** How a sentence is written, once its words stand side by side (WordPiece's clean-up). @type {[string, string][]} */
const CLEANED = [
  [" .", "."], [" ?", "?"], [" !", "!"], [" ,", ","], [" ' ", "'"], [" n't", "n't"], [" 'm", "'m"], [" do not", " don't"],
  [" 's", "'s"], [" 've", "'ve"], [" 're", "'re"],
];

/**
 * A tokenizer of the parsed tokenizer.json. An Error says which part of it isn't read here.
 *
 * @param {any} json
 * @param {{ readsNames?: boolean }} [options] readsNames: whether the name of a special token in a text, such as [mask], is that token
 */
export function tokenizerFrom(json, { readsNames = false } = {}) {
  return json.model.type === "BPE" ? new ByteTokenizer(json) : new Tokenizer(json, readsNames);
}

class Tokenizer {
  /** @param {any} json @param {boolean} readsNames */
  constructor({ model, normalizer, pre_tokenizer: cut, decoder, added_tokens: added, post_processor: around }, readsNames) {
    if (model.type !== "WordLevel") throw notRead(`a model of the type ${model.type}`);
    if (around) throw notRead(`a post-processor of the type ${around.type}`);
    this.readsNames = readsNames;
    /** @type {Map<string, number>} */
    this.ids = new Map(Object.entries(model.vocab));
    /** @type {Map<string, number>} */
    this.special = new Map(added.map(({ content, id }) => [content, id]));
    this.tokens = new Map([...this.ids, ...this.special].map(([token, id]) => [id, token]));
    this.normalize = normalizerOf(normalizer);
    this.cut = cutOf(cut);
    this.join = joinOf(decoder);
    const names = [...this.special.keys()].sort((a, b) => b.length - a.length).map(escaped);
    this.names = names.length ? new RegExp(`(${names.join("|")})`) : /((?!))/;
    /** @type {number[]} the ids of new words */
    this.slots = [];
    for (let id; (id = this.ids.get(newWord(this.slots.length + 1))) !== undefined; ) this.slots.push(id);
    /** @type {Map<string, { id: number, typed: string }>} the words that are read as new ones, in order, by how they are found again */
    this.new = new Map();
  }

  /** The words that it reads as new ones, in order. Others of a text take the next places, in that text alone. */
  get newWords() {
    return [...this.new.values()].map(({ typed }) => typed);
  }

  /**
   * The same tokenizer, whose new words are those that the vocabulary lacks in these texts, in order, and no others. The same word,
   * in capitals or not, is the same new one; labels and `decode` write it as it was typed first.
   *
   * @param {string[]} texts
   * @returns {Tokenizer}
   */
  withNewWords(texts) {
    if (!this.slots.length) return this;
    const named = Object.assign(Object.create(Tokenizer.prototype), this, { new: new Map(), tokens: new Map(this.tokens) });
    this.slots.forEach((id, at) => named.tokens.set(id, newWord(at + 1)));
    for (const { text: typed } of texts.flatMap((text) => named.lackingIn(text))) {
      const composed = this.composed(typed);
      const id = this.slots[named.new.size];
      if (id === undefined || !IS_WORD.test(typed) || named.new.has(composed)) continue;
      named.new.set(composed, { id, typed });
      named.tokens.set(id, typed);
    }
    return named;
  }

  /** The same tokenizer, with the new words of a text after its own. @param {string} text */
  withThoseOf(text) {
    return this.withNewWords([...this.newWords, text]);
  }

  /** A new word's spelling, by which it is found again: one for its letters with their marks, however typed. @param {string} text */
  composed(text) {
    return this.normalize(text).normalize("NFC");
  }

  /** A sentence, where all places for new words are taken: how many there are. */
  get limit() {
    const count = this.slots.length;
    return count && this.new.size === count ? ` A text can have up to ${count} new words.` : "";
  }

  /** One more than the largest id. */
  get vocabSize() {
    return Math.max(-1, ...this.tokens.keys()) + 1;
  }

  /** Token ids of a text. UnknownTokenError for pieces that the vocabulary lacks. @param {string} text @returns {number[]} */
  encode(text) {
    const named = this.withThoseOf(text);
    const unknown = named.lackingIn(text);
    if (unknown.length) throw new UnknownTokenError(unknown, named.limit);
    return this.parted(text).flatMap((part, at) => (at % 2 ? this.special.get(part) : this.pieces(named.read(part).text).map((piece) => named.idOf(piece))));
  }

  /** The text that these ids write; special tokens are left out, unless their names are read. @param {Iterable<number>} ids */
  decode(ids) {
    const tokens = Array.from(ids, (id) => this.tokens.get(id));
    return this.join(tokens.filter((token) => token !== undefined && (this.readsNames || !this.special.has(token))));
  }

  /** A token as it can be read in a chart. @param {number} id */
  label(id) {
    const token = this.tokens.get(id);
    return token === undefined ? `#${id}` : printable(token);
  }

  /** @param {Iterable<number>} ids */
  labels(ids) {
    return Array.from(ids, (id) => this.label(id));
  }

  /** Every piece of a text that is neither in the vocabulary nor among the new words, in order. @param {string} text */
  unknownPieces(text) {
    return this.withThoseOf(text).lackingIn(text);
  }

  /** @param {string} text @returns {UnknownPiece[]} */
  lackingIn(text) {
    let start = 0;
    return this.parted(text).flatMap((part, at) => {
      const begin = start;
      start += Array.from(part).length;
      return at % 2 ? [] : this.read(part).unknown.map((piece) => ({ ...piece, position: begin + piece.position }));
    });
  }

  /** Texts and names of special tokens by turns, a text first and last. @param {string} text */
  parted(text) {
    return this.readsNames ? text.split(this.names) : [text];
  }

  /**
   * A text as the vocabulary knows it, and every piece of it that the vocabulary lacks. An accented letter may be one character,
   * or a letter and its marks (NFC and NFD, Unicode Standard Annex 15): of a piece that is known in the other way only, that is read.
   *
   * @param {string} text
   * @returns {{ text: string, unknown: UnknownPiece[] }}
   */
  read(text) {
    const unknown = this.lacking(text);
    if (!unknown.length) return { text, unknown };
    const characters = Array.from(text);
    const parts = [];
    let end = 0;
    let known;
    const left = unknown.filter((piece) => {
      if (piece.position >= end) {
        let start = piece.position;
        while (start > end && JOINS.test(characters[start])) start--;
        parts.push(characters.slice(end, start).join(""));
        end = piece.position + Array.from(piece.text).length;
        while (end < characters.length && JOINS.test(characters[end])) end++;
        const typed = characters.slice(start, end).join("");
        known = [typed.normalize("NFC"), typed.normalize("NFD")].find((form) => form !== typed && !this.lacking(form).length);
        parts.push(known ?? typed);
      }
      return known === undefined;
    });
    const read = [...parts, ...characters.slice(end)].join("");
    return left.length || !this.lacking(read).length ? { text: read, unknown: left } : { text, unknown };
  }

  /** Every piece that the vocabulary lacks as it is typed. @param {string} text @returns {UnknownPiece[]} */
  lacking(text) {
    const broken = loneSurrogates(text);
    return broken.length ? broken : this.pieces(text).filter((piece) => this.idOf(piece) === undefined);
  }

  /** @param {string} text */
  pieces(text) {
    return text ? this.cut([{ text, position: 0 }]) : [];
  }

  /** @param {UnknownPiece} piece @returns {number | undefined} */
  idOf({ text }) {
    const normal = this.normalize(text);
    return this.new.get(this.composed(text))?.id ?? (this.special.has(normal) ? undefined : this.ids.get(normal));
  }
}

/** @param {any} given @returns {Normalize} */
function normalizerOf(given) {
  switch (given?.type) {
    case undefined:
      return (text) => text;
    case "Sequence": {
      const steps = given.normalizers.map(normalizerOf);
      return (text) => steps.reduce((changed, step) => step(changed), text);
    }
    case "Lowercase": // each by itself: a word's last Σ is as any other
      return (text) => Array.from(text, (character) => character.toLowerCase()).join("");
    case "Replace": {
      const [, word] = WHOLE_WORD.exec(given.pattern.Regex ?? "") ?? [];
      if (word) return (text) => text.replace(WORDS, (found) => (found === word ? given.content : found));
      const pattern = patternOf(given.pattern);
      return (text) => text.replace(pattern, () => given.content);
    }
    default:
      throw notRead(`a normalizer of the type ${given.type}`);
  }
}

/** @param {any} given @returns {Cut} */
function cutOf(given) {
  switch (given?.type) {
    case undefined:
      return (pieces) => pieces;
    case "Sequence": {
      const steps = given.pretokenizers.map(cutOf);
      return (pieces) => steps.reduce((cut, step) => step(cut), pieces);
    }
    case "Split":
      return cutAt(patternOf(given.pattern), behaviour(given));
    case "WhitespaceSplit":
      return cutAt(WHITE_SPACE, "Removed");
    case "Punctuation":
      return cutAt(new RegExp(PUNCTUATION, "gu"), behaviour(given));
    default:
      throw notRead(`a pre-tokenizer of the type ${given.type}`);
  }
}

/** @param {any} given */
function behaviour({ type, behavior, invert = false }) {
  if (!["Removed", "Isolated"].includes(behavior) || invert) throw notRead(`a ${type} that is ${invert ? "inverted" : behavior}`);
  return behavior;
}

/** Cut at what a pattern finds, which is a piece of its own or left out. @param {RegExp} pattern @param {string} how @returns {Cut} */
function cutAt(pattern, how) {
  return (pieces) => pieces.flatMap((piece) => {
    const found = [];
    let { position } = piece;
    let end = 0;
    const take = (text, isKept) => {
      if (text && isKept) found.push({ text, position });
      position += Array.from(text).length;
    };
    for (const match of piece.text.matchAll(pattern)) {
      take(piece.text.slice(end, match.index), true);
      take(match[0], how === "Isolated");
      end = match.index + match[0].length;
    }
    take(piece.text.slice(end), true);
    return found;
  });
}

/** @param {any} given @returns {(tokens: string[]) => string} */
function joinOf(given) {
  switch (given?.type) {
    case undefined:
      return (tokens) => tokens.join(" ");
    case "Fuse":
      return (tokens) => tokens.join("");
    case "WordPiece":
      return (tokens) => tokens.map((token, at) => {
        const piece = at === 0 ? token : token.startsWith(given.prefix) ? token.slice(given.prefix.length) : ` ${token}`;
        return given.cleanup ? CLEANED.reduce((text, [apart, joined]) => text.replaceAll(apart, joined), piece) : piece;
      }).join("");
    default:
      throw notRead(`a decoder of the type ${given.type}`);
  }
}

/** A pattern of the library's: there, classes are Unicode's. @param {{ Regex?: string, String?: string }} given */
function patternOf({ Regex: pattern, String: text }) {
  if (pattern === undefined) return new RegExp(escaped(text), "gu");
  const classes = { "\\s": "\\p{White_Space}", "\\S": "\\P{White_Space}" };
  if (/\\[bB]/.test(pattern)) throw notRead(`the pattern ${pattern}`); // a boundary of Unicode's words needs a look behind
  try {
    return new RegExp(pattern.replace(/\\[\s\S]/g, (escape) => classes[escape] ?? escape), "gu");
  } catch {
    throw notRead(`the pattern ${pattern}`);
  }
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

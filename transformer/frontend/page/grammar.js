// The grammar of a model's texts: which words may come next, and which sentences the model has never met.
//
// Of each symbol the rules have the right-hand sides that may stand for it; every other part of one is a word. A state is what may
// still follow a text, and begins with its next symbol or word: "PERSON DOES MORE".

import { counted } from "../number_format.js";
import { closestTo } from "./spelling.js";

/**
 * @typedef {{ rules: Record<string, string[]>, separators?: string }} GrammarJson separators: signs that are read as spaces
 *
 * @typedef {Set<string>} States what may follow a text: any of these
 * @typedef {{ word: string, start: number, end: number }} Piece a word or a sign of a text, and where it stands
 * @typedef {{ typed: string, known: string }} Slip a word that was likely meant to be a known one
 *
 * @typedef {object} Outside a sentence that the model has never met
 * @property {string} sentence
 * @property {string} before the last word before the one that can't stand there; "" for the first one
 * @property {string[]} could what could stand there, the most telling first
 *
 * @typedef {object} Next what may come next
 * @property {string[]} words the most telling first
 * @property {string} begun what of a word is typed already
 * @property {boolean} takesNew whether a word that the vocabulary lacks may stand here
 * @property {string} strange the word before this place that can't stand in its sentence; "" for none
 */

const NEW = "[new]";
const MASK = "[mask]";
const PIECE = /\[mask\]|[.,;:!?…“”„«»"()[\]]|[^\s.,;:!?…“”„«»"()[\]]+/gu;
const AFTER = { ".": "MORE", "?": "ASKED" };
const NAMED = 6; // words that a sentence names
const LEAST_NEW = 4; // letters of a new word that is taken for a slip: many short names are spelt alike

/** @type {WeakMap<object, Grammar>} */
const made = new WeakMap();

/** The grammar of a model's texts; null if it has none. @param {import("../engine/live_model.js").AboutModel} about */
export function grammarOf({ grammar: json, card }) {
  if (!json) return null;
  if (!made.has(json)) made.set(json, new Grammar(json, card.mask_token_id !== null));
  return made.get(json);
}

export class Grammar {
  /** @param {GrammarJson} json @param {boolean} [hasMasks] whether [mask] may stand for any word */
  constructor({ rules, separators = "" }, hasMasks = false) {
    this.rules = rules;
    this.separators = separators;
    this.hasMasks = hasMasks;
    const words = Object.values(rules).flat().flatMap((side) => side.split(" ")).filter((part) => !Object.hasOwn(rules, part) && part !== NEW);
    /** @type {Map<string, string>} each word as it is written, by its small letters */
    this.words = new Map(words.map((word) => [small(word), word]));
    /** @type {Map<string, Map<string, States>>} of each state, what may follow its next word */
    this.following = new Map();
  }

  /** @param {string} text @returns {Piece[]} */
  piecesOf(text) {
    const spaced = Array.from(text, (sign) => (this.separators.includes(sign) ? " " : sign)).join("");
    return Array.from(spaced.matchAll(PIECE), ({ 0: word, index }) => ({ word, start: index, end: index + word.length }));
  }

  /** What may follow the next word, by that word. @param {string} state @returns {Map<string, States>} */
  after(state) {
    if (!this.following.has(state)) {
      const [symbol, ...rest] = state.split(" ");
      const found = new Map();
      if (Object.hasOwn(this.rules, symbol)) {
        for (const side of this.rules[symbol]) merge(found, this.after([side, ...rest].join(" ")));
      } else if (symbol) {
        found.set(symbol, new Set([rest.join(" ")]));
      }
      this.following.set(state, found);
    }
    return this.following.get(state);
  }

  /** The same of any of these states. @param {States} states */
  afterAny(states) {
    const found = new Map();
    for (const state of states) merge(found, this.after(state));
    return found;
  }

  /** What may follow a word; nothing if it can't stand here. @param {States} states @param {string} typed @returns {States} */
  step(states, typed) {
    const isMask = this.hasMasks && typed === MASK;
    const word = this.words.get(small(typed)) ?? NEW;
    return new Set([...states].map((state) => this.after(state)).flatMap((after) => (isMask ? [...after.values()] : [after.get(word) ?? []])).flatMap((next) => [...next]));
  }

  /**
   * What may come next after a text; of words that are equally telling, those first that the text has.
   *
   * @param {string} text up to where somebody types
   * @returns {Next}
   */
  next(text) {
    const pieces = this.piecesOf(text);
    const last = pieces.at(-1)?.end === text.length && !AFTER[pieces.at(-1).word] ? pieces.at(-1) : null;
    const { states, strange } = this.read(last ? pieces.slice(0, -1) : pieces);
    const begun = last?.word ?? "";
    const offered = this.offered(states, text);
    const words = offered.filter((word) => small(word).startsWith(small(begun)));
    if (last && words.length === 1 && small(words[0]) === small(begun)) return this.next(`${text} `);
    const near = begun && !words.length ? closestTo(begun, offered) : null;
    return { words: near ? [near] : words, begun, takesNew: this.afterAny(states).has(NEW), strange };
  }

  /** Words that may come next: one after which the text goes on in each of the possible ways, then another of each. @param {States} states @param {string} text */
  offered(states, text) {
    const told = new Map(this.piecesOf(text).map(({ word, start }) => [small(word), start]));
    /** @type {Map<string, string[]>} */
    const alike = new Map();
    for (const [word, next] of this.afterAny(states)) {
      const way = [...next].sort().join("|");
      if (word !== NEW) alike.set(way, [...(alike.get(way) ?? []), word]);
    }
    const ranked = [...alike.values()].map((words) => [...words].sort((one, other) => (told.get(small(other)) ?? -1) - (told.get(small(one)) ?? -1)));
    const most = Math.max(0, ...ranked.map((words) => words.length));
    const words = Array.from({ length: most }, (_, at) => ranked.flatMap((way) => way.slice(at, at + 1))).flat();
    return this.hasMasks && words.length ? [MASK, ...words] : words;
  }

  /** Every sentence of a text that the model has never met. @param {string} text @returns {Outside[]} */
  outside(text) {
    return this.read(this.piecesOf(text)).lost.map(({ start, end, before, states }) => ({
      sentence: text.slice(start, end), before, could: this.offered(states, text).filter((word) => word !== MASK),
    }));
  }

  /** Every word of a text that was likely meant to be a known one, each once. @param {string} text @returns {Slip[]} */
  slips(text) {
    const found = new Map();
    for (const { word, states } of this.read(this.piecesOf(text)).unknown) {
      const isNew = this.afterAny(states).has(NEW);
      const known = isNew && word.length < LEAST_NEW ? null : closestTo(word, this.offered(states, ""));
      if (known) found.set(word, known);
    }
    return [...found].map(([typed, known]) => ({ typed, known }));
  }

  /**
   * Where these pieces lead, which sentences aren't to be had by the rules, and which words the vocabulary lacks where it still knew
   * what may come.
   *
   * @param {Piece[]} pieces
   */
  read(pieces) {
    /** @type {States} */
    let states = new Set(["TEXT"]);
    let [first, before, strange] = [0, "", ""]; // of the present sentence: where it begins, and the word that can't stand in it
    const [lost, unknown] = [[], []];
    pieces.forEach(({ word, end }, at) => {
      if (!strange) {
        if (word !== MASK && !this.words.has(small(word))) unknown.push({ word, states });
        const next = this.step(states, word);
        if (!next.size) {
          lost.push({ start: pieces[first].start, before, states });
          strange = word;
        }
        states = next;
        before = word;
      }
      if (strange) lost.at(-1).end = end;
      if (!AFTER[word]) return;
      if (strange) states = new Set([AFTER[word]]);
      [first, before, strange] = [at + 1, "", ""];
    });
    return { states, lost, unknown, strange };
  }
}

/**
 * What a visitor should know of a text before its numbers are trusted: that the model has never met the like, and which of its words
 * may be slips.
 *
 * @param {Grammar} grammar
 * @param {string} text
 * @returns {import("./text_reading.js").Notice[]}
 */
export function strangeIn(grammar, text) {
  const [slips, outside] = [grammar.slips(text), grammar.outside(text)];
  if (outside.length) return [{ sentence: outsideSentence(outside), slips }];
  const words = slips.map(({ typed }) => `“${typed}”`).join(", ");
  return slips.length ? [{ sentence: slips.length > 1 ? `New words to the model: ${words}.` : `${words} is a new word to the model.`, slips }] : [];
}

/** @param {Outside[]} outside */
function outsideSentence([{ sentence, before, could }, ...more]) {
  const others = more.length ? ` and ${counted(more.length, "other")}` : "";
  const known = could.slice(0, NAMED).map((word) => `“${word}”`).join(", ");
  const place = before ? `After “${before}”` : "At the beginning of a sentence";
  return `The model has never met sentences like “${sentence}”${others}, and what it predicts from there means little. ${place}, it knows ${known}${could.length > NAMED ? " and others" : ""}.`;
}

/** A text in which a known word stands for what was typed. @param {string} text @param {Slip} slip */
export function corrected(text, { typed, known }) {
  const isLetter = (sign = "") => /[\p{L}\p{M}\p{N}]/u.test(sign);
  return text.replaceAll(typed, (found, at) => (isLetter(text[at - 1]) || isLetter(text[at + typed.length]) ? found : known));
}

/** @param {Map<string, States>} found @param {Map<string, States>} more */
function merge(found, more) {
  for (const [word, states] of more) found.set(word, new Set([...(found.get(word) ?? []), ...states]));
}

const small = (word) => word.normalize("NFC").toLowerCase();

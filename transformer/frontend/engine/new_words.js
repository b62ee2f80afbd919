// What the tokens of new words are called: as they were typed. A vocabulary without them calls them [new1], [new2] and so on.

import { printable } from "./token_text.js";
/** @import { AboutModel } from "./live_model.js" */

const PLACE = /^\[new(\d+)\]$/;

/** How many new words a model reads. @param {AboutModel} about */
export const mostNewWords = ({ kinds }) => Object.values(kinds).filter(([label]) => PLACE.test(label)).length;

/** A model, with the names of these new words. @param {AboutModel} about @param {string[]} words @returns {AboutModel} */
export function withNames(about, words) {
  const named = Object.entries(about.kinds).map(([id, kind]) => {
    const word = words[Number(PLACE.exec(kind[0])?.[1]) - 1];
    return [id, word === undefined ? kind : kindOf(word)];
  });
  return { ...about, kinds: Object.fromEntries(named) };
}

/** ", new word 2" of a label that a new word has; of any other nothing. @param {string} label @param {string[]} [words] */
export function placeOf(label, words = []) {
  const at = words.findIndex((word) => printable(word) === label);
  return at < 0 ? "" : `, new word ${at + 1}`;
}

/** As `kinds_of` in Python names it: what can't be seen of it has signs. @param {string} word */
function kindOf(word) {
  const label = printable(word);
  return label === word ? [word, ` ${word}`, word] : [label, label];
}

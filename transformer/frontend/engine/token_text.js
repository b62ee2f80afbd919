// Tokens as they can be read: what can't be seen gets a sign, and what a vocabulary lacks is named.

/** @typedef {{ text: string, position: number }} UnknownPiece of a text, and where it begins, in characters */

// As in Python: characters of a later Unicode than the reader's are boxes, which can be seen.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\u{1d159}]|\u{16fe4}/u;
const MARK = /^\p{M}/u;
const CARRIER = "\u25cc"; // a dotted circle, for a mark without a letter
const SURROGATE = /^\p{Cs}$/u;
const VISIBLE = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍" };
const NAMED = 8; // pieces that an error names
const JOINER = "\u200d"; // makes one sign of two characters
const DRAWN = /^[\ufe0e\ufe0f]$/u; // says that the character before is drawn as a letter, or in colour
const SIGN = /^\p{S}/u;

/** The text has pieces that the vocabulary lacks. */
export class UnknownTokenError extends Error {
  /** @param {UnknownPiece[]} pieces @param {string} [limit] what is said besides, of the new words that a model reads all the same */
  constructor(pieces, limit = "") {
    const listed = pieces.slice(0, NAMED).map(({ text, position }) => `${quoted(printable(text))} at ${position + 1}`).join(", ");
    super(`This model has never seen: ${listed}${pieces.length > NAMED ? ` and ${pieces.length - NAMED} more` : ""}.${limit}`);
    this.pieces = pieces;
  }
}

/**
 * The text with spaces, line ends and other invisible characters replaced by signs, and marks that stand on none of its letters
 * put on a dotted circle.
 *
 * @param {string} text
 */
export function printable(text) {
  const code = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  let carries = false;
  const characters = Array.from(text);
  return characters.map((character, at) => {
    if (carries && joinsSigns(characters, at)) return character;
    const isSeen = !UNSEEN.test(character);
    const isAlone = isSeen && !carries && MARK.test(character);
    carries = isSeen;
    return VISIBLE[character] ?? (isSeen ? `${isAlone ? CARRIER : ""}${character}` : code(character));
  }).join("");
}

/** Whether a character makes one sign of its neighbours, as in an emoji of two people, or says how one is drawn. @param {string[]} characters @param {number} at */
function joinsSigns(characters, at) {
  const following = characters[at + 1] ?? " ";
  return characters[at] === JOINER ? !UNSEEN.test(following) && !MARK.test(following) : DRAWN.test(characters[at]) && SIGN.test(characters[at - 1]);
}

/** Halves of characters, which no file has. @param {string} text @returns {UnknownPiece[]} */
export function loneSurrogates(text) {
  return Array.from(text, (character, position) => ({ text: character, position })).filter((piece) => SURROGATE.test(piece.text));
}

/** As Python writes a text in quotation marks. @param {string} text */
function quoted(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  return `${mark}${text.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`)}${mark}`;
}

/** @param {string} what */
export function notRead(what) {
  return new Error(`This tokenizer can't be read in the browser: it has ${what}.`);
}

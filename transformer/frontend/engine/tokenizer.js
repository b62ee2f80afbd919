// Reads a text as token ids, as a `tokenizer.json` of characters or words says: a text is cut into pieces, and each is looked up.

const VISIBLE = { " ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍" };
const MOST_NAMED = 8; // pieces that an error lists
const PUNCTUATION = /[\p{P}$+<=>^`|~]/u;

/**
 * A tokenizer of a file's content; an Error says what is wrong with a text, or that the file is of another kind.
 *
 * @param {any} file tokenizer.json
 * @param {{ readsNames?: boolean }} [options] readsNames: whether the name of a special token in a text, such as [mask], is that token
 */
export function tokenizerFrom({ model, normalizer, pre_tokenizer: cutter, added_tokens: added = [] }, { readsNames = false } = {}) {
  const { vocab } = model;
  const special = new Map(added.filter((token) => token.special).map(({ content, id }) => [content, id]));
  const pieces = piecesOf(cutter);
  const idOf = (piece) => {
    const normal = normalised(piece, normalizer);
    return special.has(normal) || !Object.hasOwn(vocab, normal) ? undefined : vocab[normal];
  };
  const names = readsNames && special.size ? new RegExp(`(${[...special.keys()].map(escaped).join("|")})`) : null;

  /** @param {string} text @returns {number[]} */
  function encode(text) {
    if (model.type !== "WordLevel" || !pieces) throw new Error("This page can't read another prompt: its tokenizer is of another kind.");
    const [ids, unknown] = [[], []];
    let start = 0;
    for (const part of names ? text.split(names) : [text]) {
      if (names && special.has(part)) ids.push(special.get(part));
      else {
        for (const { piece, at } of pieces(part)) {
          const id = idOf(piece);
          if (id === undefined) unknown.push(`'${Array.from(piece, (letter) => VISIBLE[letter] ?? letter).join("")}' at ${[...text.slice(0, start + at)].length + 1}`);
          else ids.push(id);
        }
      }
      start += part.length;
    }
    if (!unknown.length) return ids;
    const more = unknown.length > MOST_NAMED ? ` and ${unknown.length - MOST_NAMED} more` : "";
    throw new Error(`This model has never seen: ${unknown.slice(0, MOST_NAMED).join(", ")}${more}.`);
  }

  return { encode };
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** What cuts a text into pieces, each with its place; null for a way that isn't known. */
function piecesOf(cutter) {
  const found = (text, expression) => Array.from(text.matchAll(expression), (match) => ({ piece: match[0], at: match.index }));
  if (cutter?.type === "Split" && cutter.behavior === "Isolated" && cutter.pattern.Regex === "[\\s\\S]") return (text) => found(text, /[^]/gu);
  if (cutter?.type === "Split" && cutter.behavior === "Removed") {
    const separator = new RegExp(cutter.pattern.Regex, "gu");
    return (text) => {
      const all = [];
      let start = 0;
      for (const { piece, at } of [...found(text, separator), { piece: "", at: text.length }]) {
        if (at > start) all.push({ piece: text.slice(start, at), at: start });
        start = at + piece.length;
      }
      return all;
    };
  }
  const kinds = cutter?.type === "Sequence" ? cutter.pretokenizers.map(({ type }) => type).join() : "";
  return kinds === "WhitespaceSplit,Punctuation" ? (text) => found(text, new RegExp(`${PUNCTUATION.source}|(?:(?!${PUNCTUATION.source})\\S)+`, "gu")) : null;
}

/** A piece as the vocabulary has it. @returns {string} */
function normalised(piece, normalizer) {
  if (!normalizer) return piece;
  if (normalizer.type === "Sequence") return normalizer.normalizers.reduce(normalised, piece);
  if (normalizer.type === "Lowercase") return piece.toLowerCase();
  return piece.replaceAll(new RegExp(normalizer.pattern.Regex, "gu"), normalizer.content);
}

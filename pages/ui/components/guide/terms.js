// Loads the glossary's terms, finds them in a text, and searches them.

let request; // for the terms, once in a tab

/** The glossary's terms, from where they are served; none while they can't be had. */
export function glossaryTerms(address) {
  return (request ??= fetch(new URL(address, document.baseURI)).then((response) => response.json()).catch(() => {
    request = undefined;
    return [];
  }));
}

/** What finds terms. terms: [{ name, words, alone }], where a word of `alone` counts only as the whole of a text. */
export function matcherOf(terms) {
  const byWord = new Map(), byItself = new Map();
  for (const term of terms) {
    for (const word of term.words) (term.alone.includes(word) ? byItself : byWord).set(word.toLowerCase(), term);
  }
  const longestFirst = [...byWord.keys()].sort((one, other) => other.length - one.length);
  const choices = longestFirst.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+").replace(/y$/, "(?:y|ie)"));
  // Between letters a word is part of another: neither "rank" in "frank" nor "key" in "keyboard".
  const pattern = choices.length ? new RegExp(`(^|[^\\p{L}\\p{N}_-])((${choices.join("|")})(?:e?s)?)(?![\\p{L}\\p{N}_-])`, "giu") : /(?!)/g;
  return { byWord, byItself, pattern };
}

/**
 * Where terms stand in a text: [{ term, start, end }], each term once, in the order of the text. whole: all that a label says which
 * the text is of; a word that counts by itself alone has to be that, and is none in running text.
 */
export function termsIn(text, { byWord, byItself, pattern }, whole = "") {
  const label = byItself.get(whole.trim().replace(/:$/, "").toLowerCase());
  if (label) return [{ term: label, start: text.indexOf(text.trim()), end: text.trimEnd().length }];
  const matches = new Map();
  const own = text.replace(/“[^”]*”?/gu, (quoted) => " ".repeat(quoted.length)); // what is quoted is a text's, or a control's
  for (const match of own.matchAll(pattern)) {
    const [all, , said, found] = match;
    const word = found.toLowerCase().replace(/\s+/g, " ");
    const term = byWord.get(word) ?? byWord.get(word.replace(/ie$/, "y"));
    if (!matches.has(term)) matches.set(term, { term, start: match.index + all.length - said.length, end: match.index + all.length });
  }
  return [...matches.values()];
}

/** Those terms that a search asks for: by a word for it first, then by what is said of it; all for an empty one. */
export function searched(terms, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return terms;
  const isNamed = ({ words, code }) => [...words, code].some((word) => word.toLowerCase().includes(wanted));
  const named = terms.filter(isNamed);
  return [...named, ...terms.filter((term) => !isNamed(term) && term.meaning.toLowerCase().includes(wanted))];
}

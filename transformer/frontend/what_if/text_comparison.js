// Draws texts side by side, with the first differing token marked. Texts are set through textContent.
import { node, put, untranslated } from "../dom.js";

const SIGNS = { " ": "␣", "\n": "↵\n", "\t": "⇥" };

/**
 * One text, in parts that follow each other: what was there before it was written, what it has in common with the others, the first
 * token that is its own, and the rest.
 *
 * @typedef {{ title: string, before: string, same: string, differs: string, rest: string, ends: boolean }} Version ends: rather than being cut
 */

/** Fill an element of the class `text-comparison`. @param {HTMLElement} parent @param {Version[]} versions */
export function showTexts(parent, versions) {
  parent.replaceChildren(...versions.map(article));
}

/** @param {Version} version */
function article({ title, before, same, differs, rest, ends }) {
  const made = node("article", "");
  put(node("h3", "", made), title);
  const text = node("p", "", made);
  const part = (tag, className, words) => put(untranslated(node(tag, className, text)), words);
  part("span", "before", before);
  part("span", "", same);
  if (differs) part("mark", "", SIGNS[differs] ?? differs);
  part("span", "", rest);
  if (ends) put(node("span", "ends", text), "the end");
  return made;
}

// Draws the lessons as cards: what each asks, how far the visitor is, and the way into it.

import { attribute, list, node, put, putHtml } from "../dom.js";
import { bare } from "./step.js";

/**
 * @typedef {object} Card of a lesson; title, asks, aims and missing are HTML
 * @property {string} name
 * @property {string} title
 * @property {string} asks
 * @property {number} minutes
 * @property {string[]} aims
 * @property {number} questions
 * @property {number} answered
 * @property {boolean} isBegun
 * @property {boolean} isDone
 * @property {boolean} [isNext] whether it is the one to go on with
 * @property {string} [missing] why it can't be taken here
 * @property {string} [whose] of one that was uploaded
 * @property {boolean} [isRemovable]
 */

/**
 * @param {HTMLElement} root
 * @param {Card[]} cards
 * @param {{ open?: (name: string) => void, hrefOf?: (name: string) => string, remove?: () => void }} host hrefOf: where lessons have addresses
 */
export function drawCards(root, cards, { open, hrefOf, remove }) {
  root.classList.add("lesson-list");
  list(root, cards, (card) => {
    const item = node("li", card.isNext ? "next" : "", null);
    putHtml(node("h2", "", item), card.title);
    putHtml(node("p", "", item), card.asks);
    if (card.missing) {
      putHtml(node("p", "facts", item), card.missing);
      return item;
    }
    const line = node("div", "line", item);
    put(node("span", "facts", line), [card.isNext ? "Next" : "", card.whose, `${card.minutes} minutes`, progressOf(card)].filter(Boolean).join(" · "));
    if (card.isRemovable) way(line, "button", "Remove", card).addEventListener("click", remove);
    const start = way(line, hrefOf ? "a" : "button", card.isDone ? "Review" : card.isBegun ? "Continue" : "Start", card);
    if (hrefOf) start.setAttribute("href", hrefOf(card.name));
    else start.addEventListener("click", () => open(card.name));
    if (card.aims.length) start.title = `You will be able to:\n${card.aims.map((aim) => `– ${bare(aim)}`).join("\n")}`;
    return item;
  });
}

/** @param {Card} card */
function progressOf({ isDone, isBegun, answered, questions }) {
  if (isDone) return "✓ Done";
  return isBegun ? `${answered} of ${questions} ${questions === 1 ? "question" : "questions"} answered` : "";
}

/** @param {HTMLElement} line @param {"a" | "button"} kind @param {string} words @param {Card} card */
function way(line, kind, words, { title }) {
  const made = node(kind, "act", line);
  put(made, words);
  attribute(made, "aria-label", `${words}: ${bare(title)}`);
  return made;
}

// Lists the likeliest next tokens with bars and numbers. A full bar is a probability of 1.
import { node, put, untranslated } from "./dom.js";
import { percent } from "./number_format.js";

/**
 * Fill a list.
 *
 * @param {HTMLElement} list an ol
 * @param {[string, number][]} tokens labels and probabilities, the likeliest first
 * @param {number | null} [right] which of them really came next, and is ticked
 */
export function showTopTokens(list, tokens, right = null) {
  list.replaceChildren(...tokens.map(([label, probability], at) => {
    const item = node("li", "");
    put(untranslated(node("span", "label", item)), at === right ? `${label} ✓` : label);
    node("span", "bar", item).style.setProperty("--share", String(probability));
    put(node("span", "value", item), percent(probability));
    return item;
  }));
}

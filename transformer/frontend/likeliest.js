// Lists the likeliest next tokens with bars and numbers. A full bar is a probability of 1.
import { node, put } from "./dom.js";
import { chance } from "./writing/token_descriptions.js";

/**
 * Fill a list.
 *
 * @param {HTMLElement} list an ol
 * @param {[string, number][]} found labels and probabilities, the likeliest first
 * @param {string | null} [right] the label of the token that really came next, which is ticked
 */
export function showLikeliest(list, found, right = null) {
  list.replaceChildren(...found.map(([label, probability]) => {
    const item = node("li", "");
    put(node("span", "label", item), label === right ? `${label} ✓` : label);
    node("span", "bar", item).style.setProperty("--share", String(probability));
    put(node("span", "value", item), chance(probability));
    return item;
  }));
}

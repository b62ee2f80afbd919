// Draws one text in two orders, with the likeliest tokens that are predicted for each. Tokens are set through textContent.
import { heading, node, put, tableOf, untranslated, withView } from "../../../../transformer/frontend/dom.js";
import { showTopTokens } from "../../../../transformer/frontend/top_tokens.js";

const SAME = 1e-5; // a change of probability this small is rounding

class View {
  constructor(parts) {
    this.parts = parts;
  }

  update({ ways, texts, cells, moved }) {
    const { table, body } = tableOf(["", ...ways]);
    texts.forEach(([name, labels], at) => {
      const row = node("tr", "", body);
      const head = heading(row, "row");
      put(node("span", "name", head), name);
      const written = node("span", labels.every((label) => [...label].length === 1) ? "characters" : "", head);
      for (const label of labels) put(untranslated(node("span", "token", written)), label);
      ways.forEach((way, column) => {
        const cell = node("td", "", row);
        put(node("span", "way", cell), way);
        showTopTokens(node("ol", "likeliest", cell), cells[at][column]);
      });
    });
    const last = node("tr", "", body);
    put(node("span", "name", heading(last, "row")), "The order changes a probability by up to");
    ways.forEach((way, column) => {
      const cell = node("td", "", last);
      put(node("span", "way", cell), way);
      put(node("span", "moved", cell), pointsOf(moved[column]));
    });
    this.parts.root.replaceChildren(table);
  }
}

/** A difference of probabilities in percentage points. */
function pointsOf(moved) {
  if (moved < SAME) return "0: the same for both orders";
  return `${(100 * moved).toPrecision(moved < 0.1 ? 2 : 3)} percentage points`;
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountWordOrders({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

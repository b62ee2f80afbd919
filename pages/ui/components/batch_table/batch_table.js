// Draws a padded batch as a table. Tokens are set through textContent.
import { heading, node, put, tableOf, untranslated, withView } from "../../../../transformer/frontend/dom.js";

class View {
  constructor(parts) {
    this.parts = parts;
  }

  update({ labels, padding, lines, selected }) {
    const { table, body } = tableOf(["line \\ position", ...labels[0].map((_, position) => `${position}`)]);
    labels.forEach((row, at) => {
      const made = node("tr", at === selected ? "selected" : "", body);
      heading(made, "row", `${lines[at]}`);
      row.forEach((label, position) => put(untranslated(node("td", padding[at][position] ? "padding" : "", made)), label));
    });
    this.parts.root.replaceChildren(table);
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountBatchTable({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

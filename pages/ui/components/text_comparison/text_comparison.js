// Draws texts side by side, with the first differing token marked. Texts are set through textContent.
import { node, put, withView } from "../../../../transformer/frontend/dom.js";

const SIGNS = { " ": "␣", "\n": "↵\n", "\t": "⇥" };

class View {
  constructor(parts) {
    this.parts = parts;
  }

  update({ versions }) {
    this.parts.root.replaceChildren(...versions.map((version) => this.article(version)));
  }

  article({ title, before, same, differs, rest, ends }) {
    const made = node("article", "");
    put(node("h3", "", made), title);
    const text = node("p", "", made);
    put(node("span", "before", text), before);
    put(node("span", "", text), same);
    if (differs) put(node("mark", "", text), SIGNS[differs] ?? differs);
    put(node("span", "", text), rest);
    if (ends) put(node("span", "ends", text), "the end");
    return made;
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

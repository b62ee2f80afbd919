// Draws the whole glossary, with a search field.
import { withView } from "../../../../transformer/frontend/dom.js";
import { TermList } from "../guide/term_list.js";
import { glossaryTerms } from "../guide/terms.js";

class View {
  /** @type {TermList} */ list;

  constructor({ root }) {
    this.root = root;
    this.parts = { root };
  }

  // Made once: what has been searched for stays.
  update(terms) {
    this.list ??= new TermList(this.root, terms);
    this.list.draw();
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export async function mountGlossary({ data, parentElement }) {
  if (!data) return;
  const terms = await glossaryTerms(data.terms);
  withView(parentElement, (parts) => new View(parts), (view) => view.update(terms));
}

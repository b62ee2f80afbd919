// Draws the glossary as a list with a search field.
import { attribute, node, put } from "../../../../transformer/frontend/dom.js";
import { drawEntry } from "./glossary_entry.js";
import { searched } from "./terms.js";

export class TermList {
  /** parent: where it is drawn. terms: all of them. leave(): called when a way to a page is taken. */
  constructor(parent, terms, leave = () => {}) {
    this.terms = terms;
    this.here = [];
    this.leave = leave;
    const label = node("label", "search", parent);
    label.append("Search the glossary ");
    this.searchField = Object.assign(node("input", "", label), { type: "search", autocomplete: "off", spellcheck: false });
    this.searchField.addEventListener("input", () => this.draw());
    this.count = node("p", "count", parent);
    attribute(this.count, "role", "status");
    this.list = node("ul", "entries", parent);
  }

  /** here: the terms that stand on the page, which come first; without any, all are listed alike. */
  show(here = []) {
    this.here = here;
    this.draw();
  }

  draw() {
    const { here, searchField: { value } } = this;
    const shown = value.trim() || !here.length ? searched(this.terms, value) : here;
    put(this.count, countOf(shown.length, value.trim(), shown === here));
    this.list.replaceChildren(...shown.map((term) => {
      const item = node("li", "");
      drawEntry(item, term, this.leave);
      return item;
    }));
  }
}

function countOf(count, query, isHere) {
  const terms = `${count} ${count === 1 ? "term" : "terms"}`;
  if (isHere) return `${terms} on this page, from top to bottom. The search finds all others.`;
  if (!query) return `${terms}.`;
  return count ? `${terms} with “${query}”.` : `No term has “${query}”.`;
}

// Draws a side panel with this page's terms of the glossary.
import { isComposing, put } from "../../../../transformer/frontend/dom.js";
import { focused } from "./shortcuts.js";
import { TermList } from "./term_list.js";
/** @import { TermUnderlines } from "./term_underlines.js" */

export class TermPanel {
  /**
   * @param {Record<string, any>} parts the overlay's
   * @param {object[]} terms the glossary
   * @param {TermUnderlines} underlines what stands on the page
   */
  constructor({ panel, panelTitle, panelClose, panelBody }, terms, underlines) {
    this.element = panel;
    this.title = panelTitle;
    this.underlines = underlines;
    this.list = new TermList(panelBody, terms, () => this.close());
    panelClose.addEventListener("click", () => this.close());
    panel.addEventListener("keydown", (event) => {
      event.stopPropagation(); // its keys are its own
      if (event.key === "Escape" && !isComposing(event)) this.close();
    });
  }

  get isOpen() {
    return !this.element.hidden;
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
  }

  open() {
    this.before = focused();
    const here = this.underlines.shown;
    put(this.title, here.length ? "Terms on this page" : "Glossary");
    this.list.searchField.value = "";
    this.list.show(here);
    this.element.hidden = false;
    this.list.searchField.focus();
  }

  close() {
    this.element.hidden = true;
    if (this.before?.isConnected) this.before.focus();
  }
}

// A side panel with the terms of this page.
import { put } from "../../../../transformer/frontend/dom.js";
import { focused } from "./shortcuts.js";
import { TermList } from "./term_list.js";
/** @import { Marks } from "./marks.js" */

export class Panel {
  /**
   * @param {Record<string, any>} parts the overlay's
   * @param {object[]} terms the glossary
   * @param {Marks} marks what stands on the page
   */
  constructor({ panel, panelTitle, panelClose, panelBody }, terms, marks) {
    this.element = panel;
    this.title = panelTitle;
    this.marks = marks;
    this.list = new TermList(panelBody, terms, () => this.close());
    panelClose.addEventListener("click", () => this.close());
    panel.addEventListener("keydown", (event) => {
      event.stopPropagation(); // its keys are its own
      if (event.key === "Escape") this.close();
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
    const here = this.marks.shown;
    put(this.title, here.length ? "Terms on this page" : "Glossary");
    this.list.box.value = "";
    this.list.show(here);
    this.element.hidden = false;
    this.list.box.focus();
  }

  close() {
    this.element.hidden = true;
    if (this.before?.isConnected) this.before.focus();
  }
}

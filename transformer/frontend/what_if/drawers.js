// Folded parts below a picture: its numbers as a table that can be saved, and the lines of Python that compute them.

import { attribute, button, dataTable, node, put, untranslated } from "../dom.js";
import { plainNumber } from "../number_format.js";
import { csvFile, saveBlob } from "../save.js";

const MOST_ROWS = 300; // that are shown

/** @typedef {{ columns: string[], rows: (string | number | boolean | null)[][] }} Table */

/** A folded table, which is made when it is opened. */
export class TableDrawer {
  /** @type {string} */ fileName;
  /** @type {(() => Table | Promise<Table>) | null} */ make = null;

  /** @param {HTMLElement} parent @param {string} title */
  constructor(parent, title) {
    this.title = title;
    this.root = node("details", "drawer", parent);
    put(node("summary", "", this.root), title);
    this.content = node("div", "", this.root);
    this.root.addEventListener("toggle", () => this.fill());
    this.root.hidden = true;
  }

  /** @param {string} fileName @param {() => Table | Promise<Table>} make */
  offer(fileName, make) {
    Object.assign(this, { fileName, make });
    this.root.hidden = false;
    this.fill();
  }

  async fill() {
    if (!this.root.open || !this.make) return;
    const { make, fileName } = this;
    const { columns, rows } = await make();
    if (make !== this.make) return;
    this.content.replaceChildren();
    const frame = node("div", "table", this.content);
    frame.tabIndex = 0;
    attribute(frame, "role", "region");
    attribute(frame, "aria-label", this.title);
    const shown = rows.slice(0, MOST_ROWS).map((row) => row.map((value) => (typeof value === "number" && !Number.isInteger(value) ? plainNumber(value) : String(value ?? ""))));
    frame.append(dataTable(columns, shown));
    if (rows.length > MOST_ROWS) put(node("p", "faint", this.content), `The first ${MOST_ROWS} of ${rows.length.toLocaleString("en")} rows; the file has them all.`);
    const written = rows.map((row) => row.map((value) => (typeof value === "boolean" ? (value ? "True" : "False") : value)));
    button(this.content, "Save as CSV", () => saveBlob(fileName, csvFile(columns, written)), { className: "save" });
  }
}

/** Folded programs. */
export class PythonDrawer {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = node("details", "drawer", parent);
    put(node("summary", "", this.root), "Python code for this view");
    this.content = node("div", "", this.root);
    this.root.hidden = true;
  }

  /** @param {string[]} programs */
  show(programs) {
    this.root.hidden = !programs.length;
    this.content.replaceChildren(...programs.map((program) => Object.assign(untranslated(node("pre", "", null)), { textContent: program })));
  }
}

// A folded table of numbers, which is made when it is opened, and saved as a CSV file.

import { button, dataTable, node, put } from "./dom.js";
import { plainNumber } from "./number_format.js";
import { csvFile, saveBlob } from "./save.js";

/** @typedef {{ columns: string[], rows: (string | number)[][] }} Table */

const MOST_ROWS = 500; // that are shown; the file has all
const MOST_CELLS = 20_000;

export class TableDrawer {
  /** @type {{ make: () => Table, name: string }} */ shown;

  /** @param {HTMLElement} parent @param {string} title */
  constructor(parent, title) {
    this.root = node("details", "table-drawer", parent);
    this.title = node("summary", "", this.root);
    put(this.title, title);
    this.table = node("div", "", this.root);
    this.table.tabIndex = 0; // it scrolls
    this.note = node("p", "", this.root);
    button(this.root, "Save as CSV", () => this.save(), { className: "act" });
    this.root.addEventListener("toggle", () => this.fill());
  }

  /** @param {() => Table} make @param {string} name of the file, without its ending */
  show(make, name) {
    this.shown = { make, name };
    this.fill();
  }

  fill() {
    if (!this.root.open || !this.shown) return;
    const { columns, rows } = this.shown.make();
    const count = Math.min(rows.length, MOST_ROWS, Math.floor(MOST_CELLS / columns.length));
    const written = (value) => (typeof value !== "number" || Number.isInteger(value) ? String(value) : plainNumber(value));
    this.table.replaceChildren(dataTable(columns, rows.slice(0, count).map((row) => row.map(written))));
    put(this.note, rows.length > count ? `The first ${count} of ${rows.length.toLocaleString("en")} rows; the file has all.` : "");
  }

  save() {
    const { make, name } = this.shown;
    const { columns, rows } = make();
    saveBlob(`${name}.csv`, csvFile(columns, rows));
  }
}

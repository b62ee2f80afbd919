// The generated tokens as a table and a CSV file.
import { dataTable, put } from "../dom.js";
import { csvFile, saveBlob } from "../save.js";

const COLUMNS_OF_TABLE = ["position", "token", "id", "probability", "rank", "entropy (nats)"];

function rowsOf(generated, length) {
  return generated.tokens.slice(0, length - generated.start).map(({ label, id, probability, rank, entropy }, at) => (
    [generated.start + at, label, id, probability, rank, entropy]));
}

export class TokenTable {
  /** @type {HTMLDetailsElement} */ drawer;
  /** @type {HTMLElement} */ table;
  /** @type {() => string} */ titleOf;

  constructor({ numbers, table, csv: button }, titleOf) {
    Object.assign(this, { drawer: numbers, table, titleOf });
    numbers.addEventListener("toggle", () => this.fill());
    button.addEventListener("click", () => this.save());
  }

  /** length: of the text that is seen; live: it grows, and the table waits. */
  show(generated, length, live) {
    this.shown = { generated, length };
    if (!live) this.fill();
  }

  fill() {
    if (!this.drawer.open || !this.shown) return;
    const { generated, length } = this.shown;
    const rows = rowsOf(generated, length);
    const key = JSON.stringify(rows);
    if (key === this.key) return;
    this.key = key;
    const texts = rows.map(([position, label, id, probability, rank, entropy]) => (
      [String(position), label, String(id), ...(probability === undefined ? ["", "", ""] : [probability.toPrecision(4), String(rank), entropy.toFixed(4)])]));
    if (rows.length) this.table.replaceChildren(dataTable(COLUMNS_OF_TABLE, texts));
    else put(this.table, "Nothing is written yet.");
  }

  save() {
    if (!this.shown) return;
    const { generated, length } = this.shown;
    saveBlob(`${this.titleOf()}-text.csv`, csvFile(COLUMNS_OF_TABLE, rowsOf(generated, length)));
  }
}

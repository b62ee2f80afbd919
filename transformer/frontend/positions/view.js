// Shows how a model knows the order of its tokens: its text in two orders, the sinusoidal table, and the model's own positions.

import { heading, node, partsOf, put, tableOf, untranslated } from "../dom.js";
import { Matrix } from "../matrix/matrix.js";
import { defaultOf, pageState } from "../page/page_state.js";
import { TableDrawer } from "../table_drawer.js";
import { showTopTokens } from "../top_tokens.js";
import { NAMES, ROUNDING, candidatesOf, comparedOrders, howItIsDone, tableOfOrders, verdict, waysOf } from "./orders.js";
import { drawnOf, inWords, kindOfPositions } from "./own_positions.js";
import { angleOf, likenessOf, sinusoidalTable } from "./sinusoidal.js";
/** @import { Api, Parameters } from "../api.js" */
/** @import { ViewFrame } from "../page/view_frame.js" */
/** @import { AboutModel, AboutText, Comparison, Way } from "./orders.js" */
/** @import { Drawn } from "./own_positions.js" */

/**
 * @typedef {{ length: number, width: number, base: number, position: number, dimension: number }} Dials of the sinusoidal table
 */

const TITLE = "Sinusoidal table";
const HARDLY = 0.1; // radians that a wave turns by over the whole table, and less, that can hardly be seen
const DIALS = ["length", "width", "base", "position", "dimension"];
const MARKUP = `
  <div data-part="orders" hidden>
    <p data-part="uses"></p>
    <p class="view-note" data-part="tooShort">This prompt is too short to be shuffled. Type a longer one.</p>
    <div class="word-orders" data-part="words" data-testid="word-orders"></div>
    <p class="view-note" data-part="how"></p>
  </div>
  <div class="shell-heading"><h2>${TITLE}</h2><p data-part="speeds"></p></div>
  <div data-part="picture"></div>
  <label class="view-dial">Length: positions <input type="range" min="2" max="512" data-part="length"> <output data-part="lengthSaid"></output></label>
  <label class="view-dial">Width: d_model <input type="range" min="2" max="512" step="2" data-part="width"> <output data-part="widthSaid"></output></label>
  <label class="view-dial" title="10000 in the paper. A smaller base makes the slow waves faster.">Base <input type="number" min="2" max="1000000" step="any" required data-part="base"></label>
  <div data-part="tables"></div>
  <details class="view-part" data-part="formulaPart">
    <summary>One number by formula</summary>
    <label class="view-dial">Position <input type="number" min="0" required data-part="position"></label>
    <label class="view-dial">Dimension <input type="number" min="0" required data-part="dimension"></label>
    <p class="formula" data-part="formula"></p>
    <p class="view-note">Vaswani et al. 2017, §3.5: even dimensions 2i are sines, odd ones 2i+1 cosines of the same angle.</p>
  </details>
  <details class="view-part" data-part="alike">
    <summary>Two rows compared</summary>
    <label class="view-dial">Position <input type="number" min="0" required data-part="one"></label>
    <label class="view-dial">and position <input type="number" min="0" required data-part="other"></label>
    <output data-part="likeness"></output>
  </details>
  <details class="view-part" data-part="own" hidden>
    <summary>This model's positions</summary>
    <p data-part="ownWords"></p>
    <div data-part="ownPicture"></div>
    <p class="view-note" data-part="ownCaption"></p>
  </details>`;

export class PositionsView {
  /** @type {AboutModel | null} */ model = null;
  /** @type {Dials} */ dials;
  /** @type {Api} */ api;
  /** @type {Api[]} */ apis = [];

  /** @param {HTMLElement} root @param {ViewFrame} host */
  constructor(root, host) {
    this.host = host;
    root.innerHTML = MARKUP; // constant
    const parts = (this.parts = partsOf(root));
    this.orderTable = new TableDrawer(parts.orders, "These predictions as a table");
    this.numbers = new TableDrawer(parts.tables, "The table's numbers");
    this.matrix = new Matrix({ root: node("div", "", parts.picture) });
    this.ownMatrix = new Matrix({ root: node("div", "", parts.ownPicture) });
    this.ownTable = new TableDrawer(parts.own, "Its numbers");
    for (const name of DIALS) {
      parts[name].addEventListener("change", () => parts[name].reportValidity() && this.choose({ [name]: Number(parts[name].value) }));
      if (parts[name].type === "range") parts[name].addEventListener("input", () => put(parts[`${name}Said`], parts[name].value));
    }
    for (const name of ["one", "other"]) parts[name].addEventListener("input", () => this.compare());
    parts.own.addEventListener("toggle", () => this.showOwn());
    parts.formulaPart.open = ["position", "dimension"].some((name) => pageState().get(name) !== null);
    this.drawTable();
  }

  /** @param {Api} api @param {Record<string, any>} about `AboutModel` and `AboutText` */
  async begin(api, { model, text }) {
    const { parts } = this;
    this.apis.forEach((each) => each.end());
    this.apis = [];
    Object.assign(this, { api, model });
    this.drawn = null; // of the model's own positions
    this.drawTable();
    parts.orders.hidden = !model;
    parts.own.hidden = !model;
    parts.alike.open ||= !model; // of a page without one it is what there is to try
    if (!model) return;
    parts.words.hidden = parts.how.hidden = this.orderTable.root.hidden = parts.tooShort.hidden = true;
    const uses = ["", model.title, " uses ", kindOfPositions(model.config), " positions."];
    putBold(parts.uses, uses);
    this.showOwn();
    if (text) await this.showOrders(api, model, text, uses);
  }

  setSelection() {
    this.drawTable();
  }

  draw() {
    this.matrix.draw();
    if (this.ownMatrix.values) this.ownMatrix.draw();
  }

  /** @param {Api} api @param {AboutModel} model @param {AboutText} text @param {string[]} uses */
  async showOrders(api, model, text, uses) {
    const { parts } = this;
    const found = await comparedOrders(api, (asked) => this.another(asked), model, text);
    parts.tooShort.hidden = found !== null;
    if (!found) return;
    const ways = waysOf(model);
    const [sentence, ...more] = verdict(model, ways, found);
    putBold(parts.uses, [...uses.slice(0, -1), `${uses.at(-1)} ${sentence}`, ...more]);
    showWords(parts.words, ways, found);
    put(parts.how, howItIsDone(model, ways, text));
    parts.words.hidden = parts.how.hidden = this.orderTable.root.hidden = false;
    this.orderTable.show(() => tableOfOrders(ways, found), `${model.file}-order`);
  }

  /** @param {Parameters} asked */
  another(asked) {
    const api = this.host.apiOf(asked, { computed: () => {} });
    this.apis.push(api);
    return api;
  }

  /** The visitor turns dials; a shorter or narrower table takes the chosen cell along. @param {Partial<Dials>} chosen */
  choose(chosen) {
    const dials = within({ ...this.dials, ...chosen });
    const changed = Object.fromEntries(Object.entries(dials).filter(([name, value]) => value !== this.dials[name] || name in chosen));
    this.host.select(Object.fromEntries(Object.entries(changed).map(([name, value]) => [name, value === defaultOf(name) ? null : value])));
    if ("position" in chosen || "dimension" in chosen) this.parts.formulaPart.open = true;
    this.drawTable();
  }

  drawTable() {
    const { parts } = this;
    const state = pageState();
    const given = Object.fromEntries(DIALS.map((name) => [name, Number(state.get(name) ?? defaultOf(name))]));
    const dials = within(/** @type {any} */ (given));
    if (JSON.stringify(dials) === JSON.stringify(this.dials)) return;
    this.dials = dials;
    const { length, width, base, position, dimension } = dials;
    for (const name of DIALS) parts[name].value = String(dials[name]);
    put(parts.lengthSaid, String(length));
    put(parts.widthSaid, String(width));
    Object.assign(parts.position, { max: String(length - 1) });
    Object.assign(parts.dimension, { max: String(width - 1) });
    this.values = sinusoidalTable(length, width, base);
    put(parts.speeds, `The paper's model adds this table to its embeddings. ${speedsInWords(dials)}`);
    const about = { ...matrixAbout(TITLE, "dimension", "position", "value"), selected: [position, dimension], chooses: true };
    this.matrix.update({ tensors: { values: { shape: [length, width], data: this.values } }, metadata: { about } }, (_, { row, column }) => this.choose({ position: row, dimension: column }));
    this.numbers.show(() => tableOfColumns("position", "dimension", length, width, this.values), "sinusoidal-encoding");
    this.showFormula();
    const shift = Number(state.get("shift") ?? defaultOf("shift"));
    Object.assign(parts.one, { max: String(length - 1), value: String(position) });
    Object.assign(parts.other, { max: String(length - 1), value: String(Math.min(position + shift, length - 1)) });
    this.compare();
  }

  /** One cell's number, as the paper's formula has it. */
  showFormula() {
    const { position, dimension, width, base } = this.dials;
    const { formula } = this.parts;
    const wave = dimension % 2 ? "cos" : "sin";
    const power = node("sup", "", null);
    power.textContent = `${dimension - (dimension % 2)}/${width}`;
    const cell = node("sub", "", null);
    cell.textContent = `(${position}, ${dimension})`;
    formula.replaceChildren("PE", cell, ` = ${wave}(${position} ÷ ${base}`, power, `) = ${wave}(${Number(angleOf(position, dimension, width, base).toPrecision(6))}) = ${this.values[position * width + dimension].toFixed(6)}`);
  }

  compare() {
    const { one, other, likeness } = this.parts;
    const both = [one, other].map(({ value }) => Number(value));
    const { length, width } = this.dials;
    const isThere = both.every((position) => Number.isInteger(position) && position >= 0 && position < length);
    put(likeness, isThere ? `The cosine of the angle between their rows is ${likenessOf(this.values, width, both[0], both[1]).toFixed(3)}.` : `Positions are from 0 to ${length - 1}.`);
  }

  /** What the model itself uses, once that is unfolded. */
  showOwn() {
    const { parts, model } = this;
    if (!parts.own.open || !model || this.drawn === model) return;
    this.drawn = model;
    const { config, learned, slopes, hasAttention, file } = model;
    put(parts.ownWords, inWords(config, hasAttention));
    this.host.fetch(() => drawnOf(config, learned, slopes, this.api), (/** @type {Drawn | null} */ found) => {
      parts.ownPicture.hidden = this.ownTable.root.hidden = !found;
      put(parts.ownCaption, found?.caption ?? "");
      if (!found) return;
      const { name, across, down, unit, rows, columns, values } = found;
      this.ownMatrix.update({ tensors: { values: { shape: [rows, columns], data: values } }, metadata: { about: { ...matrixAbout(name, across, down, unit), limit: limitOf(values) } } }, () => {});
      put(this.ownTable.title, `${name}, as numbers`);
      this.ownTable.show(() => (slopes ? tableOfColumns("distance", "head", columns, rows, values, true) : tableOfColumns("position", "dimension", rows, columns, values)), `${file}-positions`);
    });
  }
}

/** @param {Dials} dials */
function within({ length, width, base, position, dimension }) {
  const size = { length: Math.min(Math.max(length, 2), 512), width: Math.min(Math.max(width + (width % 2), 2), 512) };
  return { ...size, base, position: Math.min(position, size.length - 1), dimension: Math.min(dimension, size.width - 1) };
}

const matrixAbout = (name, across, down, unit) => ({ name, across, down, unit, kind: "scores", square: false, labels: null, offsets: [0, 0], selected: null, chooses: false, limit: 1 });

/** The end of a scale: 1 for sines, else the largest size. @param {Float32Array} values */
function limitOf(values) {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  return largest > 0.5 && largest < 1.001 ? 1 : largest;
}

/** A matrix as a table with a column for each of its columns, or rows. */
function tableOfColumns(first, name, rows, columns, values, isTurned = false) {
  const cell = (row, column) => (isTurned ? values[column * rows + row] : values[row * columns + column]);
  const every = (count) => Array.from({ length: count }, (_, at) => at);
  return { columns: [first, ...every(columns).map((at) => `${name} ${at}`)], rows: every(rows).map((row) => [row, ...every(columns).map((column) => cell(row, column))]) };
}

/** The waves of the table from left to right. @param {Dials} dials */
function speedsInWords({ length, width, base }) {
  if (width === 2) return "Both columns are one fast wave, its sine and its cosine, which tells neighbours apart.";
  const slowest = angleOf(1, width - 1, width, base);
  const around = Math.round((2 * Math.PI) / slowest).toLocaleString("en");
  const right = (length - 1) * slowest >= HARDLY ? `they slow down to the right, and the last takes about ${around} positions to come round` : "slow ones on the right, near from far";
  return `Fast waves on the left tell neighbours apart; ${right}.`;
}

/** Texts of which every second is bold. @param {HTMLElement} element @param {string[]} texts */
function putBold(element, texts) {
  element.replaceChildren(...texts.map((text, at) => (at % 2 ? Object.assign(node("b", "", null), { textContent: text }) : text)));
}

/** Both texts as rows, and what is predicted for each in every way. @param {HTMLElement} root @param {Way[]} ways @param {Comparison} found */
function showWords(root, ways, { texts, distributions, moved, label }) {
  const { table: made, body } = tableOf(["", ...ways.map(({ name }) => name)]);
  const cellIn = (/** @type {HTMLElement} */ row, /** @type {number} */ way) => {
    const cell = node("td", "", row);
    put(node("span", "way", cell), ways[way].name);
    return cell;
  };
  texts.forEach((text, order) => {
    const labels = text.map(label);
    const row = node("tr", "", body);
    const head = heading(row, "row");
    put(node("span", "name", head), NAMES[order]);
    const written = node("span", labels.every((each) => [...each].length === 1) ? "characters" : "", head);
    for (const each of labels) put(untranslated(node("span", "token", written)), each);
    distributions[order].forEach((of, way) => showTopTokens(node("ol", "likeliest", cellIn(row, way)), candidatesOf(of, label)));
  });
  const last = node("tr", "", body);
  put(node("span", "name", heading(last, "row")), "The order changes a probability by up to");
  moved.forEach((by, way) => put(node("span", "moved", cellIn(last, way)), by < ROUNDING ? "0: the same for both orders" : `${(100 * by).toPrecision(by < 0.1 ? 2 : 3)} percentage points`));
  root.replaceChildren(made);
}

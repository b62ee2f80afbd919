// Draws the cells of an attention pattern: one is chosen by click or keyboard, and marked beside the right one.

import { attribute, heading, node, put, untranslated } from "../dom.js";

/**
 * @typedef {object} Picture of a head's cells
 * @property {string[]} queries labels, from the position `begin[0]` on
 * @property {string[]} keys labels, from the position `begin[1]` on
 * @property {[number, number]} begin
 * @property {boolean} causal whether later keys are hidden
 * @property {string} label
 */

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const LONGEST_UPRIGHT = 2; // letters of a key above a column; longer ones are turned, so that the columns stay narrow

/** A query and a key, by their positions, in words. @param {Picture} picture @param {number[]} cell @param {(label: string) => string} [show] */
export function cellInWords({ queries, keys, begin }, [query, key], show = String) {
  const name = (labels, at) => (labels[at] === undefined ? "another" : show(labels[at]));
  return `${name(queries, query - begin[0])} (${query}) looks at ${name(keys, key - begin[1])} (${key})`;
}

export class CellInput {
  /**
   * @param {HTMLElement} parent
   * @param {Picture} picture
   * @param {{ chosen: number[] | null, right?: number[] | null, take?: (cell: number[]) => void }} options cells by their positions; without
   *   `take`, none can be chosen
   */
  constructor(parent, picture, { chosen, right = null, take }) {
    this.picture = picture;
    this.right = right;
    this.take = take;
    const scroller = node("div", "scroller", parent);
    this.table = node("table", `cells${take ? "" : " fixed"}`, scroller);
    attribute(this.table, "role", "grid");
    attribute(this.table, "aria-label", picture.label);
    attribute(this.table, "data-turned", String(picture.keys.some((text) => text.length > LONGEST_UPRIGHT)));
    untranslated(this.table);
    this.sentence = node("p", "sentence", parent);
    attribute(this.sentence, "role", "status");
    this.build(picture);
    this.at = [picture.queries.length - 1, 0];
    this.mark(chosen);
    if (!take) return;
    this.table.onclick = ({ target }) => this.choose(/** @type {Element} */ (target).closest("td"));
    this.table.onkeydown = (event) => this.press(event);
  }

  build({ queries, keys, causal }) {
    const head = node("tr", "", node("thead", "", this.table));
    node("td", "corner", head);
    this.columns = keys.map((text) => heading(head, "col", text));
    const body = node("tbody", "", this.table);
    this.heads = [];
    this.cells = queries.map((text, query) => {
      const row = node("tr", "", body);
      this.heads.push(heading(row, "row", text));
      return keys.map((other, key) => {
        const hidden = causal && key > query;
        const cell = node("td", hidden ? "hidden" : "", row);
        attribute(cell, "role", "gridcell");
        attribute(cell, "aria-label", `${text} looks at ${other}${hidden ? ", hidden by the mask" : ""}`);
        Object.assign(cell.dataset, { query, key });
        return cell;
      });
    });
  }

  /** @param {number[] | null} chosen */
  mark(chosen) {
    const [first, right] = [chosen, this.right].map((cell) => cell?.map((position, side) => position - this.picture.begin[side]));
    if (first) this.at = first;
    for (const [query, row] of this.cells.entries()) for (const [key, cell] of row.entries()) {
      const is = (other) => other?.[0] === query && other?.[1] === key;
      cell.classList.toggle("chosen", Boolean(is(first)));
      cell.classList.toggle("right", Boolean(is(right)));
      attribute(cell, "aria-selected", String(Boolean(is(first))));
      cell.tabIndex = is(this.at) && this.take ? 0 : -1;
    }
    this.heads.forEach((made, query) => attribute(made, "class", first?.[0] === query ? "on" : ""));
    this.columns.forEach((made, key) => attribute(made, "class", first?.[1] === key ? "on" : ""));
    const sentence = chosen ? `Chosen: ${cellInWords(this.picture, chosen)}.` : "Rows are queries, columns are keys. Choose a cell.";
    put(this.sentence, this.right ? `${chosen ? sentence : ""} Right: ${cellInWords(this.picture, this.right)}, with the blue frame.`.trim() : sentence);
  }

  choose(cell) {
    if (!cell?.dataset.query || cell.classList.contains("hidden")) return;
    const chosen = [Number(cell.dataset.query), Number(cell.dataset.key)].map((index, side) => index + this.picture.begin[side]);
    this.mark(chosen);
    cell.focus();
    this.take(chosen);
  }

  press(event) {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(event.target.closest("td"));
    else if (step) {
      const [query, key] = this.at.map((index, side) => index + step[side]);
      const cell = this.cells[query]?.[key];
      if (cell && !cell.classList.contains("hidden")) {
        this.cells[this.at[0]][this.at[1]].tabIndex = -1;
        this.at = [query, key];
        cell.tabIndex = 0;
        cell.focus();
      }
    } else return;
    event.preventDefault();
  }
}

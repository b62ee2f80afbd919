// Draws numbers as bars, one row a label and one bar a side, in a table.

import { heading, node, put, tableOf, untranslated } from "../dom.js";

const LONGEST = 7; // rem of the longest bar

/**
 * @typedef {object} BarData
 * @property {string} first what the labels are
 * @property {string[]} labels
 * @property {string[]} names of the sides
 * @property {(number | null)[][]} values by side; null where there is none
 * @property {(value: number) => string} says a number beside its bar
 * @property {number} [marked] the row that is set off
 * @property {boolean} [areData] whether labels are data, rather than words
 */

/** @param {HTMLElement} parent @param {BarData} data */
export function showBars(parent, { first, labels, names, values, says, marked, areData = true }) {
  const { table, body } = tableOf([first, ...names]);
  table.className = "bars";
  const longest = Math.max(...values.flat().map((value) => value ?? 0)) || 1;
  for (const [at, label] of labels.entries()) {
    const row = node("tr", at === marked ? "marked" : "", body);
    const name = heading(row, "row");
    put(areData ? untranslated(node("code", "", name)) : name, label);
    for (const side of values) {
      const cell = node("td", "", row);
      if (side[at] === null) continue;
      node("span", "bar", cell).style.width = `${((LONGEST * side[at]) / longest).toFixed(3)}rem`;
      cell.append(says(side[at]));
    }
  }
  parent.replaceChildren(table);
}

// Draws things that are put in order, by dragging or with buttons.

import { attribute, button, node, put, putHtml } from "../dom.js";
import { letDrag } from "../row_dragging.js";

export class OrderInput {
  /**
   * @param {HTMLElement} parent
   * @param {string[]} items HTML
   * @param {number[]} order the numbers of the items, as they stand
   * @param {{ label: string, take?: (order: number[]) => void }} options without `take`, nothing can be moved
   */
  constructor(parent, items, order, { label, take }) {
    this.order = [...order];
    this.take = take;
    this.list = node("ol", `order${take ? "" : " fixed"}`, parent);
    attribute(this.list, "aria-label", label);
    if (take) {
      this.sentence = node("p", "sentence", parent);
      attribute(this.sentence, "role", "status");
      put(this.sentence, "Drag them, or use the arrows.");
    }
    this.rows = items.map((words) => this.row(words));
    this.arrange();
  }

  row(html) {
    const row = node("li", "");
    const number = node("span", "number", row);
    const said = node("span", "words", row);
    putHtml(said, html);
    const words = said.textContent;
    const entry = { row, number, words, buttons: [] };
    if (!this.take) return entry;
    for (const [sign, by, name] of /** @type {const} */ ([["↑", -1, "up"], ["↓", 1, "down"]])) {
      const made = button(row, sign, () => this.move(entry, by, made));
      attribute(made, "aria-label", `Move ${name}: ${words}`);
      entry.buttons.push(made);
    }
    letDrag(row, { passed: (step) => this.shift(entry, step), done: (hasMoved) => hasMoved && this.take([...this.order]) });
    return entry;
  }

  move(entry, by, button) {
    const to = this.shift(entry, by);
    (button.disabled ? entry.buttons.find((other) => !other.disabled) : button)?.focus();
    put(this.sentence, `${entry.words} is number ${to + 1} of ${this.order.length} now.`);
    this.take([...this.order]);
  }

  /** Moves an entry by some places; returns where it stands then. */
  shift(entry, by) {
    const from = this.order.findIndex((item) => this.rows[item] === entry);
    const [item] = this.order.splice(from, 1);
    this.order.splice(from + by, 0, item);
    this.arrange();
    return from + by;
  }

  /** Puts the rows as the order says, without taking one away: what is held, or has the focus, keeps it. */
  arrange() {
    this.order.forEach((item, rank) => {
      const { row, number, buttons } = this.rows[item];
      put(number, `${rank + 1}.`);
      if (buttons.length) {
        buttons[0].disabled = rank === 0;
        buttons[1].disabled = rank === this.order.length - 1;
      }
      const there = this.list.children[rank];
      if (there !== row) this.list.insertBefore(row, there ?? null);
    });
  }
}

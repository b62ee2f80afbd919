// Draws the input for an answer that is an order, set by dragging or with buttons.
import { attribute, node, put, withView } from "../../../../transformer/frontend/dom.js";
import { letDrag } from "../../../../transformer/frontend/row_dragging.js";

class Order {
  constructor(parts) {
    this.parts = parts;
    this.list = node("ol", "", parts.body);
    this.rows = [];
  }

  /** data: `items`, their words; `order`, their numbers as they stand; `fixed`, whether nothing can be moved. */
  update(data, send) {
    const whole = JSON.stringify([data.items, data.order, data.fixed, data.serial]);
    this.send = send;
    if (whole === this.whole) return;
    this.whole = whole;
    this.fixed = data.fixed;
    this.order = [...data.order];
    attribute(this.list, "class", data.fixed ? "fixed" : "");
    attribute(this.list, "aria-label", data.label);
    this.list.replaceChildren();
    this.rows = data.items.map((words) => this.row(words));
    put(this.parts.sentence, data.fixed ? "" : "Drag them, or use the arrows.");
    this.arrange();
  }

  row(words) {
    const row = node("li", "");
    const number = node("span", "number", row);
    put(node("span", "words", row), words);
    const entry = { row, number, words, buttons: [] };
    if (this.fixed) return entry;
    for (const [sign, by, name] of [["↑", -1, "up"], ["↓", 1, "down"]]) {
      const button = node("button", "", row);
      put(button, sign);
      attribute(button, "aria-label", `Move ${name}: ${words}`);
      button.onclick = () => this.move(this.rankOf(entry), by, button);
      entry.buttons.push(button);
    }
    letDrag(row, { passed: (step) => this.passed(entry, step), done: (hasMoved) => hasMoved && this.report() });
    return entry;
  }

  rankOf(entry) {
    return this.order.findIndex((item) => this.rows[item] === entry);
  }

  move(from, by, button) {
    const to = from + by;
    if (to < 0 || to >= this.order.length) return;
    const [item] = this.order.splice(from, 1);
    this.order.splice(to, 0, item);
    this.arrange();
    const buttons = this.rows[item].buttons;
    (button.disabled ? buttons.find((other) => !other.disabled) : button)?.focus();
    put(this.parts.sentence, `${this.rows[item].words} is number ${to + 1} of ${this.order.length} now.`);
    this.report();
  }

  passed(entry, step) {
    const from = this.rankOf(entry);
    const [item] = this.order.splice(from, 1);
    this.order.splice(from + step, 0, item);
    this.arrange();
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

  report() {
    this.send("chosen", [...this.order]);
  }
}

export function mountSortableList({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  withView(parentElement, (parts) => new Order(parts), (view) => view.update(data, setTriggerValue));
}

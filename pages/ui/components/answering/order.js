// A question whose answer is an order, set by dragging or with buttons.
import { attribute, node, put, withView } from "../../../../transformer/frontend/dom.js";

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
    const found = { row, number, words, buttons: [] };
    if (this.fixed) return found;
    for (const [sign, by, name] of [["↑", -1, "up"], ["↓", 1, "down"]]) {
      const button = node("button", "", row);
      button.type = "button";
      put(button, sign);
      attribute(button, "aria-label", `Move ${name}: ${words}`);
      button.onclick = () => this.move(this.place(found), by, button);
      found.buttons.push(button);
    }
    row.onpointerdown = (event) => this.hold(event, found);
    return found;
  }

  place(found) {
    return this.order.findIndex((item) => this.rows[item] === found);
  }

  move(place, by, button) {
    const to = place + by;
    if (to < 0 || to >= this.order.length) return;
    const [item] = this.order.splice(place, 1);
    this.order.splice(to, 0, item);
    this.arrange();
    const buttons = this.rows[item].buttons;
    (button.disabled ? buttons.find((other) => !other.disabled) : button)?.focus();
    put(this.parts.sentence, `${this.rows[item].words} is number ${to + 1} of ${this.order.length} now.`);
    this.report();
  }

  hold(event, found) {
    if (event.button || event.target.closest("button")) return;
    const before = this.order.join();
    let begin = event.clientY;
    found.row.setPointerCapture(event.pointerId);
    found.row.classList.add("held");
    found.row.onpointermove = ({ clientY }) => {
      const place = this.place(found);
      const step = clientY < begin ? -1 : 1;
      const next = this.rows[this.order[place + step]];
      if (next && Math.abs(clientY - begin) > next.row.offsetHeight * 0.6) {
        begin += step * (next.row.offsetHeight + 6);
        this.order.splice(place, 1, this.order[place + step]);
        this.order.splice(place + step, 1, this.rows.indexOf(found));
        this.arrange();
      }
      found.row.style.transform = `translateY(${clientY - begin}px)`;
    };
    found.row.onpointerup = found.row.onpointercancel = () => {
      found.row.classList.remove("held");
      found.row.style.transform = "";
      found.row.onpointermove = found.row.onpointerup = found.row.onpointercancel = null;
      if (this.order.join() !== before) this.report();
    };
  }

  /** Puts the rows as the order says, without taking one away: what is held, or has the focus, keeps it. */
  arrange() {
    this.order.forEach((item, place) => {
      const { row, number, buttons } = this.rows[item];
      put(number, `${place + 1}.`);
      if (buttons.length) {
        buttons[0].disabled = place === 0;
        buttons[1].disabled = place === this.order.length - 1;
      }
      const there = this.list.children[place];
      if (there !== row) this.list.insertBefore(row, there ?? null);
    });
  }

  report() {
    this.send("chosen", [...this.order]);
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  withView(parentElement, (parts) => new Order(parts), (view) => view.update(data, setTriggerValue));
}

// Draws the input for an answer that is a cell of an attention pattern, chosen by click or keyboard.
import { attribute, node, put, untranslated, withView } from "../../../../transformer/frontend/dom.js";

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const LONGEST_UPRIGHT = 2; // letters of a key above a column; longer ones are turned, so that the columns stay narrow

class Cells {
  constructor(parts) {
    this.parts = parts;
    this.scroller = node("div", "scroller", parts.body);
    this.table = node("table", "", this.scroller);
    attribute(this.table, "role", "grid");
    untranslated(this.table);
    this.table.onclick = ({ target }) => this.choose(/** @type {Element} */ (target).closest("td"));
    this.table.onkeydown = (event) => this.press(event);
  }

  /** data: labels of `queries` and `keys`, `causal`, the `chosen` and the `right` cell or null, `fixed`. */
  update(data, send) {
    const { queries, keys, causal, label } = data;
    const whole = JSON.stringify([queries, keys, causal, label]);
    this.send = send;
    this.data = data;
    if (whole !== this.whole) this.build(queries, keys, causal, label);
    this.whole = whole;
    attribute(this.table, "class", data.fixed ? "fixed" : "");
    this.mark(data.chosen);
    this.say(data.chosen);
  }

  build(queries, keys, causal, label) {
    attribute(this.table, "aria-label", label);
    attribute(this.table, "data-turned", String(keys.some((text) => text.length > LONGEST_UPRIGHT)));
    this.table.replaceChildren();
    const head = node("tr", "", node("thead", "", this.table));
    const corner = node("td", "hidden corner", head);
    put(corner, "");
    corner.style.background = "none";
    this.columns = keys.map((text) => {
      const made = node("th", "", head);
      made.scope = "col";
      put(made, text);
      return made;
    });
    const body = node("tbody", "", this.table);
    this.heads = [];
    this.cells = queries.map((text, query) => {
      const row = node("tr", "", body);
      const made = node("th", "", row);
      made.scope = "row";
      put(made, text);
      this.heads.push(made);
      return keys.map((other, key) => {
        /** @type {HTMLTableCellElement & { hiddenByMask?: boolean }} */
        const cell = node("td", "", row);
        const hidden = causal && key > query;
        attribute(cell, "role", "gridcell");
        attribute(cell, "aria-label", `${text} looks at ${other}${hidden ? ", hidden by the mask" : ""}`);
        Object.assign(cell.dataset, { query, key });
        cell.hiddenByMask = hidden;
        cell.tabIndex = -1;
        return cell;
      });
    });
    this.at = [queries.length - 1, 0];
  }

  mark(chosen) {
    if (chosen) this.at = chosen;
    for (const [query, row] of this.cells.entries()) for (const [key, cell] of row.entries()) {
      const is = (cell) => cell?.[0] === query && cell?.[1] === key;
      const names = [cell.hiddenByMask && "hidden", is(chosen) && "chosen", is(this.data.right) && "right"];
      attribute(cell, "class", names.filter(Boolean).join(" "));
      attribute(cell, "aria-selected", String(Boolean(is(chosen))));
      cell.tabIndex = is(this.at) && !this.data.fixed ? 0 : -1;
    }
    this.heads.forEach((made, query) => attribute(made, "class", chosen?.[0] === query ? "on" : ""));
    this.columns.forEach((made, key) => attribute(made, "class", chosen?.[1] === key ? "on" : ""));
  }

  say(chosen) {
    const { queries, keys, right, fixed } = this.data;
    const cell = ([query, key]) => `${queries[query]} (${query + this.data.begin[0]}) looks at ${keys[key]} (${key + this.data.begin[1]})`;
    const sentence = chosen ? `Chosen: ${cell(chosen)}.` : "Rows are queries, columns are keys. Choose a cell.";
    put(this.parts.sentence, fixed && right ? `${sentence} Right: ${cell(right)}, with the blue frame.` : sentence);
  }

  choose(cell) {
    if (!cell?.dataset.query || cell.hiddenByMask || this.data.fixed) return;
    const chosen = [Number(cell.dataset.query), Number(cell.dataset.key)];
    this.mark(chosen);
    this.say(chosen);
    cell.focus();
    this.send("chosen", chosen);
  }

  press(event) {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(event.target.closest("td"));
    else if (step && !this.data.fixed) {
      const [query, key] = this.at.map((index, side) => index + step[side]);
      const cell = this.cells[query]?.[key];
      if (cell && !cell.hiddenByMask) {
        this.cells[this.at[0]][this.at[1]].tabIndex = -1;
        this.at = [query, key];
        cell.tabIndex = 0;
        cell.focus();
      }
    } else return;
    event.preventDefault();
  }
}

export function mountCellPicker({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  withView(parentElement, (parts) => new Cells(parts), (view) => view.update(data, setTriggerValue));
}

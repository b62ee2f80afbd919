// How a room has voted, as tables whose cells are bars. Answers reach the page through textContent.
import { node, put, withView } from "../../../../transformer/frontend/dom.js";

const WIDEST = 70; // per cent of a cell

class View {
  constructor(parts) {
    this.parts = parts;
  }

  update({ rounds }) {
    const most = Math.max(1, ...rounds.flatMap(([, bars]) => bars.map(([, count]) => count)));
    this.parts.root.replaceChildren(...rounds.map(([title, bars]) => table(title, bars, most)));
  }
}

function table(title, bars, most) {
  const made = node("table", "");
  put(node("caption", "", made), title);
  const body = node("tbody", "", made);
  for (const [label, count, right] of bars) {
    const row = node("tr", right ? "right" : "", body);
    const head = node("th", "", row);
    head.scope = "row";
    put(head, right ? `✓ ${label}` : label);
    const cell = node("td", "", row);
    node("span", "bar", cell).style.width = `${(WIDEST * count) / most}%`;
    put(node("span", "", cell), `${count}`);
  }
  if (!bars.length) put(node("td", "", node("tr", "", body)), "Nobody has answered yet.");
  return made;
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

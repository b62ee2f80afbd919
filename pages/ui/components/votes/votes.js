// How a room has voted: tables whose cells are bars, and numbers as dots over their line. Answers reach the page through textContent.
import { attribute, node, put, withView } from "../../../../transformer/frontend/dom.js";

const WIDEST = 70; // per cent of a cell
const COLUMNS = 40; // of dots over a line: numbers that are closer stand on one another
const MOST_DOTS = 12; // one above another; beyond that a dot stands for several

class View {
  constructor(parts) {
    this.parts = parts;
  }

  update({ rounds, line, points, turns }) {
    const most = Math.max(1, ...rounds.flatMap(([, bars]) => bars.map(([, count]) => count)));
    const made = line ? points.map(([title, numbers]) => lineOf(title, numbers, line)) : rounds.map(([title, bars]) => table(title, bars, most));
    this.parts.root.replaceChildren(...made);
    if (turns && turns !== this.turns) requestAnimationFrame(() => bringIntoSight(this.parts.root));
    this.turns = turns;
  }
}

/** The question stands beside its votes: both are seen once one of them has changed. */
function bringIntoSight(root) {
  const { host } = /** @type {ShadowRoot} */ (root.getRootNode());
  (host?.closest(".st-key-lesson_asked") ?? root).scrollIntoView({ block: "start" });
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

/** Dots over a line, the number that is right marked on it. */
function lineOf(title, numbers, [low, high, lowText, highText, right]) {
  const made = node("figure", "line");
  put(node("figcaption", "", made), title);
  const field = node("div", "field", made);
  attribute(field, "role", "img");
  const told = numbers.map(([, text, count]) => `${text}: ${count}`).join(", ");
  attribute(field, "aria-label", `${told || "Nobody has answered yet"}${right ? `. Right: ${right[1]}` : ""}`);
  const share = (value) => Math.min(1, Math.max(0, (value - low) / (high - low)));
  const columns = new Map();
  for (const [value, text, count] of numbers) {
    const at = Math.round(share(value) * COLUMNS);
    const column = columns.get(at) ?? { count: 0, texts: [] };
    columns.set(at, { count: column.count + count, texts: [...column.texts, `${text}: ${count}`] });
  }
  const each = Math.max(1, Math.ceil(Math.max(0, ...[...columns.values()].map(({ count }) => count)) / MOST_DOTS));
  for (const [at, { count, texts }] of columns) {
    const stack = node("div", "stack", field);
    stack.style.left = `${(100 * at) / COLUMNS}%`;
    stack.title = texts.join("\n");
    for (let dot = 0; dot < Math.ceil(count / each); dot += 1) node("span", "dot", stack);
  }
  if (right) {
    const mark = node("div", "mark", field);
    mark.style.left = `${100 * share(right[0])}%`;
    put(node("span", share(right[0]) > 0.7 ? "left" : "", mark), `✓ ${right[1]}`);
  }
  const ends = node("div", "ends", made);
  for (const text of [lowText, highText]) put(node("span", "", ends), text);
  if (!numbers.length) put(node("p", "", made), "Nobody has answered yet.");
  if (each > 1) put(node("p", "", made), `A dot stands for ${each}.`);
  return made;
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

// Draws the votes of a class: a table of bars, or numbers as dots on a line. Answers are set through textContent.
import { attribute, heading, node, put, tableOf, withView } from "../../../../transformer/frontend/dom.js";
import { Tooltip } from "../../../../transformer/frontend/tooltip.js";

const WIDEST = 65; // per cent of a cell
const COLUMNS = 40; // of dots over a line: numbers that are closer stand on one another
const MOST_DOTS = 12; // one above another; beyond that a dot stands for several

class View {
  constructor(parts) {
    this.parts = parts;
    new Tooltip(parts.tip).tellTitles(parts.root);
  }

  update({ rounds, bars, line, points, scrolls }) {
    const made = line ? points.map(([title, numbers]) => lineOf(title, numbers, line)) : [tableOfVotes(rounds, bars)];
    this.parts.root.replaceChildren(...made);
    if (scrolls && scrolls !== this.scrolls) requestAnimationFrame(() => bringIntoSight(this.parts.root));
    this.scrolls = scrolls;
  }
}

/** The question stands beside its votes: both are seen once one of them has changed. */
function bringIntoSight(root) {
  const { host } = /** @type {ShadowRoot} */ (root.getRootNode());
  (host?.closest(".st-key-lesson_asked") ?? root).scrollIntoView({ block: "start" });
}

/** A row for each answer, a column for each round of votes. */
function tableOfVotes(rounds, bars) {
  const most = Math.max(1, ...bars.flatMap(([, counts]) => counts));
  const { table, body } = tableOf(["", ...rounds]);
  for (const [label, counts, right] of bars) {
    const row = node("tr", right ? "right" : "", body);
    heading(row, "row", right ? `✓ ${label}` : label);
    for (const count of counts) {
      const cell = node("td", "", row);
      node("span", "bar", cell).style.width = `${(WIDEST * count) / most}%`;
      put(node("span", "", cell), `${count}`);
    }
  }
  if (!bars.length) put(node("td", "", node("tr", "", body)), "No votes yet.");
  return table;
}

/** Dots over a line, the number that is right marked on it. */
function lineOf(title, numbers, [low, high, lowText, highText, right]) {
  const made = node("figure", "line");
  put(node("figcaption", "", made), title);
  const field = node("div", "field", made);
  attribute(field, "role", "img");
  const counted = numbers.map(([, text, count]) => `${text}: ${count}`).join(", ");
  attribute(field, "aria-label", `${counted || "No votes yet"}${right ? `. Correct: ${right[1]}` : ""}`);
  const share = (value) => Math.min(1, Math.max(0, (value - low) / (high - low)));
  const columns = new Map();
  for (const [value, text, count] of numbers) {
    const at = Math.round(share(value) * COLUMNS);
    const column = columns.get(at) ?? { count: 0, texts: [] };
    columns.set(at, { count: column.count + count, texts: [...column.texts, `${text}: ${count}`] });
  }
  const perDot = Math.max(1, Math.ceil(Math.max(0, ...[...columns.values()].map(({ count }) => count)) / MOST_DOTS));
  for (const [at, { count, texts }] of columns) {
    const stack = node("div", "stack", field);
    stack.style.left = `${(100 * at) / COLUMNS}%`;
    stack.title = texts.join("\n");
    for (let dot = 0; dot < Math.ceil(count / perDot); dot += 1) node("span", "dot", stack);
  }
  if (right) {
    const mark = node("div", "mark", field);
    mark.style.left = `${100 * share(right[0])}%`;
    put(node("span", share(right[0]) > 0.7 ? "left" : "", mark), `✓ ${right[1]}`);
  }
  const ends = node("div", "ends", made);
  for (const text of [lowText, highText]) put(node("span", "", ends), text);
  if (!numbers.length) put(node("p", "", made), "No votes yet.");
  if (perDot > 1) put(node("p", "", made), `A dot stands for ${perDot}.`);
  return made;
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountVotes({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

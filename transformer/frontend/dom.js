// Helpers that create and update DOM nodes. Parts of a view's markup are named by `data-part`.

/**
 * Parts of a view by name; which kind of element each is, its markup says.
 *
 * @param {ParentNode} parent
 * @returns {Record<string, any>}
 */
export function partsOf(parent) {
  /** @type {NodeListOf<HTMLElement>} */
  const parts = parent.querySelectorAll("[data-part]");
  return Object.fromEntries([...parts].map((part) => [part.dataset.part, part]));
}

/**
 * A button sends no form.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} className
 * @param {ParentNode | null} [parent]
 */
export function node(tag, className, parent) {
  const made = document.createElement(tag);
  made.className = className;
  if (tag === "button") made.setAttribute("type", "button");
  parent?.append(made);
  return made;
}

/**
 * A button that does something. words: said of it where its title is a sign.
 *
 * @param {ParentNode | null} parent
 * @param {string} title
 * @param {(event: MouseEvent) => void} act
 * @param {{ words?: string, className?: string }} [options]
 */
export function button(parent, title, act, { words = "", className = "" } = {}) {
  const made = node("button", className, parent);
  put(made, title);
  if (words) {
    attribute(made, "aria-label", words);
    made.title = words;
  }
  made.addEventListener("click", act);
  return made;
}

/** A select with a title before it. @param {ParentNode} parent @param {string} title @param {(value: string) => void} choose */
export function choice(parent, title, choose) {
  const label = node("label", "", parent);
  label.append(`${title} `);
  const select = node("select", "", label);
  attribute(select, "aria-label", title); // else its options would be part of its name
  select.addEventListener("change", () => choose(select.value));
  return select;
}

/** Do something whenever an element has another width; its height changes with the words in it. @param {Element} element @param {() => void} act */
export function onWidth(element, act) {
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === width) return;
    width = contentRect.width;
    act();
  }).observe(element);
}

/**
 * Have a button of a form do what the form is for, at a click as at Enter in a field, once what is typed may be sent. Nothing is
 * submitted: a frame may forbid that.
 *
 * @param {HTMLButtonElement} button
 * @param {() => void} act
 */
export function sends(button, act) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    if (button.form.reportValidity()) act();
  });
}

/** Whether a key goes into a word that is being composed, as Chinese or Japanese are typed: its Enter only accepts the word. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229; // Safari's Enter comes after the composition
}

/** What has the focus in the document, or the shadow tree, that an element stands in. */
export function focusedIn(element) {
  const root = /** @type {Document | ShadowRoot} */ (element.getRootNode());
  return /** @type {HTMLElement | null} */ (root.activeElement);
}

/** Let browsers that translate pages leave an element's text as it is: a token, a name, a number. @template {HTMLElement} Made @param {Made} element */
export function untranslated(element) {
  element.translate = false;
  return element;
}

/**
 * Set the HTML that was made of a lesson's Markdown, in which no text can become an element. Its styles are in `data-style`: a host
 * may forbid the attribute, and not what a script sets.
 *
 * @param {Element} element
 * @param {string} html
 */
export function putHtml(element, html) {
  element.innerHTML = html;
  /** @type {NodeListOf<HTMLElement>} */
  const styled = element.querySelectorAll("[data-style]");
  for (const part of styled) part.style.cssText = part.dataset.style;
  for (const data of element.querySelectorAll("code, dd, math, svg, .cells")) {
    data.setAttribute("translate", "no");
    data.classList.add("notranslate"); // the attribute is HTML's: formulas and drawings have the class
  }
}

const QUOTED = /“([^”]+)”/;

// Setting what is already there would still cost a style recalculation: with 600 tokens at 8 updates a second it adds up.
export function put(element, text) {
  if (element.textContent === text) return;
  const isSplit = element.firstElementChild?.localName === "bdi";
  if (!isSplit && (!QUOTED.test(text) || element.translate === false)) element.textContent = text;
  else putSplit(element, isSplit ? [...element.childNodes] : [], text);
}

// What a sentence quotes is data: no browser translates it, and a token that is written from right to left leaves the words around
// it where they are. Nodes are kept, though they may be empty: those that come and go with each sentence would flicker.
function putSplit(element, nodes, text) {
  const parts = `${text}`.split(QUOTED);
  if (!nodes.length) element.replaceChildren();
  for (let at = 0; at < Math.max(parts.length, nodes.length); at++) {
    const isData = at % 2 === 1;
    const words = isData || parts[at] === undefined ? parts[at] ?? "" : `${at ? "”" : ""}${parts[at]}${at < parts.length - 1 ? "“" : ""}`;
    const made = nodes[at] ?? element.appendChild(isData ? untranslated(document.createElement("bdi")) : document.createTextNode(""));
    if (made.textContent !== words) made.textContent = words;
  }
}
/** A text, and smaller behind it a name, if it says something else. */
export function putBoth(element, text, smaller) {
  element.replaceChildren(text, ...(smaller === text ? [] : [" ", Object.assign(untranslated(node("small", "")), { textContent: smaller })]));
}
export function property(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}
export function attribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Have an element hold these children, in this order. Those that it has already aren't moved: a press that falls in between would be lost. */
export function arrange(parent, children) {
  const kept = new Set(children);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  children.forEach((child, at) => {
    if (parent.children[at] !== child) parent.insertBefore(child, parent.children[at] ?? null);
  });
}

/** A child for each entry, made once for equal entries. @template Entry @param {Element} parent @param {Entry[]} entries @param {(entry: Entry) => HTMLElement} make */
export function list(parent, entries, make) {
  const before = new Map([...parent.children].map((child) => [/** @type {HTMLElement} */ (child).dataset.entry, child]));
  arrange(parent, entries.map((entry) => {
    const key = JSON.stringify(entry);
    const child = before.get(key) ?? make(entry);
    /** @type {HTMLElement} */ (child).dataset.entry = key;
    return child;
  }));
}

/** A table with titles of its columns, and no rows yet; a column without one has an empty cell. @param {string[]} titles */
export function tableOf(titles) {
  const table = node("table", "");
  const top = node("tr", "", node("thead", "", table));
  for (const title of titles) {
    if (title) heading(top, "col", title);
    else node("td", "", top);
  }
  return { table, body: node("tbody", "", table) };
}

/** A box for a table, which keys can scroll. @param {ParentNode | null} parent @param {string} title said to screen readers */
export function tableBox(parent, title) {
  const box = node("div", "table", parent);
  box.tabIndex = 0;
  attribute(box, "role", "region");
  attribute(box, "aria-label", title);
  return box;
}

/** The heading of a column or a row. @param {HTMLElement} row @param {"col" | "row"} scope @param {string} [words] */
export function heading(row, scope, words = "") {
  const made = node("th", "", row);
  made.scope = scope;
  put(made, words);
  return made;
}

/** A table of texts: those of its cells are data. @param {string[]} titles @param {string[][]} rows */
export function dataTable(titles, rows) {
  const { table, body } = tableOf(titles);
  for (const cells of rows) {
    const row = untranslated(node("tr", "", body));
    for (const cell of cells) put(node("td", "", row), cell);
  }
  return table;
}

/**
 * Let a select offer these; the one that is chosen stays chosen if it is still there.
 *
 * @param {HTMLSelectElement} select
 * @param {(readonly any[])[]} entries [value, title] each
 * @param {boolean} [isData] whether their titles are
 */
export function offer(select, entries, isData = false) {
  const offered = JSON.stringify(entries);
  if (select.dataset.offered === offered) return;
  select.dataset.offered = offered;
  const { value: before } = select;
  select.replaceChildren(...entries.map(([value, title]) => {
    const option = new Option(title, String(value));
    return isData ? untranslated(option) : option;
  }));
  if (entries.some(([value]) => String(value) === before)) select.value = before;
}

/** Let keys reach what is drawn on a canvas. kind: as it is said to screen readers. @param {HTMLCanvasElement} canvas @param {string} kind @param {string} [name] */
export function focusable(canvas, kind, name = "") {
  canvas.tabIndex = 0;
  attribute(canvas, "role", "application");
  attribute(canvas, "aria-roledescription", kind);
  if (name) attribute(canvas, "aria-label", name);
}

/** Whether an element takes room on the page, and isn't made invisible. (Safari has checkVisibility since 17.4.) */
export function isVisible(element) {
  if (element.checkVisibility) return element.checkVisibility({ visibilityProperty: true });
  return element.getClientRects().length > 0 && getComputedStyle(element).visibility === "visible";
}

const views = new WeakMap();

/**
 * Call `use` with the view that belongs to `parent`, which is made by `make` once its markup is there: the markup may
 * come after the first call, and a view made without it would never show anything.
 */
export function withView(parent, make, use) {
  if (!parent.querySelector("[data-part=root]")) {
    if (parent.isConnected) requestAnimationFrame(() => withView(parent, make, use));
    return;
  }
  let view = views.get(parent);
  if (!view?.parts.root.isConnected) views.set(parent, (view = make(partsOf(parent))));
  use(view);
}

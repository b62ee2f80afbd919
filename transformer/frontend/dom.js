// Nodes and what they show, changed only where something is new. A view's markup has its parts named by `data-part`.

/** Parts of a view by name. */
export function partsOf(parent) {
  return Object.fromEntries([...parent.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
}

export function node(tag, className, parent) {
  const made = document.createElement(tag);
  made.className = className;
  parent?.append(made);
  return made;
}

// Setting what is already there would still cost a style recalculation: with 600 tokens at 8 updates a second it adds up.
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
export function property(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}
export function attribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
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

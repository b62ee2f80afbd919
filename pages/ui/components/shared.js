// What every component does alike. sources.py puts it in front of each one's own files, as inline modules can't import.
// It knows nothing of who sends the data: a component's markup has its parts named by `data-part`.

/** Parts of a component by name. */
function partsOf(parent) {
  return Object.fromEntries([...parent.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
}

function node(tag, className, parent) {
  const made = document.createElement(tag);
  made.className = className;
  parent?.append(made);
  return made;
}

// Setting what is already there would still cost a style recalculation: with 600 tokens at 8 updates a second it adds up.
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
function property(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}
function attribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** The header (JSON) and the bytes after it, of a message that starts with the header's length as four bytes. */
function decode(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { header, rest: bytes.subarray(4 + length) };
}

const views = new WeakMap();

/**
 * Call `use` with the view that belongs to `parent`, which is made by `make` once its markup is there: the markup may
 * come after the first call, and a view made without it would never show anything.
 */
function withView(parent, make, use) {
  if (!parent.querySelector("[data-part=root]")) {
    if (parent.isConnected) requestAnimationFrame(() => withView(parent, make, use));
    return;
  }
  let view = views.get(parent);
  if (!view?.parts.root.isConnected) views.set(parent, (view = make(partsOf(parent))));
  use(view);
}

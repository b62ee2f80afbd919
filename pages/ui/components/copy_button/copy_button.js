// Draws a button that copies a text which isn't on screen.
import { put, withView } from "../../../../transformer/frontend/dom.js";

class View {
  constructor(parts) {
    this.parts = parts;
    parts.copy.addEventListener("click", () => put(parts.status, copy(this.text, parts.copy) ? "Copied." : "This browser doesn't allow it."));
  }

  update({ label, text }) {
    this.text = text;
    put(this.parts.copy, label);
  }
}

/** Returns whether it could. A page that came over plain HTTP, as in most classrooms, has no navigator.clipboard. */
function copy(text, button) {
  const field = document.createElement("textarea");
  field.value = text;
  field.style.cssText = "position: fixed; opacity: 0";
  button.after(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  button.focus();
  return isDone;
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export function mountCopyButton({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

// A tooltip shown on hover and focus.
import { attribute, node, put } from "./dom.js";
import { isRaised, lower, place, raise } from "./top_layer.js";
import { onTap } from "./pointing.js";

const GAP = 8; // pixels between the tip and its target, and between the tip and the window's edge
const POINTER = 12; // pixels that a mouse pointer covers

export class Tooltip {
  /** element: has role="tooltip" and popover="manual". */
  constructor(element) {
    this.element = element;
    this.scrolled = () => (this.target ? this.show(this.target, this.lines) : this.hide());
  }

  /** lines: what is said, a text each. */
  show(target, lines) {
    this.target = target;
    const { left, top, bottom } = target.getBoundingClientRect();
    this.showAround(lines, left, top - GAP, bottom + GAP);
  }

  /** The same at a point of the window, in pixels: for a cell of a canvas. */
  showAt(x, y, lines) {
    this.target = null;
    this.showAround(lines, x + POINTER, y - GAP, y + POINTER + GAP);
  }

  // With its lower edge at `above` if there is room, else with its upper edge at `below`; rather where it covers no tour's card.
  showAround(lines, x, above, below) {
    const { element: tip } = this;
    if (!tip.isConnected) return; // its view has gone, and the pointer's event came after it
    this.lines = lines;
    addEventListener("scroll", this.scrolled, { capture: true, passive: true }); // it stays with its target, or goes
    put(tip, lines.join("\n"));
    // The top layer: neither a box's scrolling nor an ancestor's transform clips or moves the tip.
    raise(tip);
    const { clientWidth, clientHeight } = document.documentElement;
    const within = (start, size, length) => Math.max(Math.min(start, length - size - GAP), GAP);
    place(tip, ({ width, height }) => {
      const left = within(x, width, clientWidth);
      const tops = [...(above - height > GAP ? [above - height] : []), below].map((top) => within(top, height, clientHeight));
      return { left, top: tops.find((top) => !isOver(left, top, width, height)) ?? tops[0] };
    });
  }

  hide() {
    this.target = null;
    removeEventListener("scroll", this.scrolled, { capture: true });
    lower(this.element);
  }

  /** Let a tap show the titles in an element, which a mouse shows by resting there; on what is pressed, it only presses. */
  tellTitles(element) {
    onTap(element, (event) => {
      const titled = event?.target.closest("[title]");
      if (titled && !event.target.closest("button, a, label, select, input, summary")) this.show(titled, [titled.title]);
      else if (!event) this.hide();
    });
  }

  /** A target that was taken away can't be described any more. */
  hideIfGone() {
    if (this.target && !this.target.isConnected) this.hide();
  }
}

/** Whether something lies there that itself lies over the page. */
function isOver(left, top, width, height) {
  const corners = [0, 1].flatMap((right) => [0, 1].map((bottom) => [left + right * width, top + bottom * height]));
  return corners.some(([x, y]) => document.elementFromPoint?.(x, y)?.closest("[data-over]"));
}

/** A tip made in an element, where Escape hides it before it does anything else. @param {HTMLElement} parent */
export function tipWithin(parent) {
  const made = node("div", "tip", parent);
  attribute(made, "role", "tooltip");
  attribute(made, "popover", "manual");
  const tip = new Tooltip(made);
  parent.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isRaised(made)) return;
    event.stopPropagation();
    tip.hide();
  });
  return tip;
}

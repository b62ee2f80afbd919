// Draws a breadcrumb from the model to the selected cell, and a small map of the model.

import { SELECTED } from "../colours.js";
import { attribute, node, put } from "../dom.js";
import { prepared } from "../canvas.js";
import { layerName, plainName } from "./plain_names.js";
import { roleColour } from "./role_colours.js";

const MAP = { width: 64, height: 32 };

/** The steps from the model to what is open: [{ title, open }]; the cell, where one is chosen, has `cell`. config: the model's. */
export function stepsTo(focus, cell, inNumbers, config) {
  const steps = [{ title: "model", open: "" }];
  if (!focus) return steps;
  const { stack, group, part, name } = focus;
  if (group.kind === "block") steps.push({ title: layerName(stack, group), open: group.id });
  if (part && group.kind === "block") steps.push({ title: part.title, open: part.id });
  if (name) steps.push({ title: plainName(name, config), open: name });
  if (name && cell) steps.push({ title: inNumbers, open: name, cell });
  return steps;
}

export class Breadcrumb {
  /** open(what): somewhere on the way up, or on the map, was chosen. */
  constructor(parent, map, open) {
    this.list = node("ol", "", parent);
    this.canvas = node("canvas", "", map);
    this.open = open;
    this.list.addEventListener("click", (event) => {
      const at = /** @type {Element} */ (event.target).closest("button")?.dataset.at;
      if (at !== undefined) open(this.steps[Number(at)].open);
    });
    this.canvas.addEventListener("click", (event) => this.onMap(event));
  }

  show(focus, cell, inNumbers, config) {
    this.steps = stepsTo(focus, cell, inNumbers, config);
    while (this.list.children.length > this.steps.length) this.list.lastChild.remove();
    while (this.list.children.length < this.steps.length) node("button", "", node("li", "", this.list));
    this.steps.forEach(({ title }, at) => {
      const button = /** @type {HTMLButtonElement} */ (this.list.children[at].firstChild);
      put(button, title);
      button.dataset.at = String(at);
      const isLast = at === this.steps.length - 1;
      if (isLast) attribute(button, "aria-current", "location");
      else button.removeAttribute("aria-current");
    });
  }

  /** The whole model, with what is open and the chosen token marked. whole: the layout with nothing open. */
  showMap(whole, focus, token, page) {
    this.whole = whole;
    const context = prepared(this.canvas, MAP.width, MAP.height);
    this.scale = { x: MAP.width / whole.width, y: MAP.height / whole.height };
    const { x, y } = this.scale;
    for (const stack of whole.stacks) {
      for (const group of stack.groups) {
        const isOpen = focus?.group.id === group.id;
        context.globalAlpha = isOpen ? 1 : 0.28;
        context.fillStyle = isOpen ? page.accent : roleColour(group.kind, null);
        context.fillRect(stack.left * x, group.top * y + 0.5, Math.max(6, (stack.right - stack.left) * x), Math.max(1, (group.bottom - group.top) * y - 1));
      }
      if (!stack.writes) continue;
      context.globalAlpha = 1;
      context.fillStyle = SELECTED;
      context.fillRect((stack.left + (token + 0.5) * stack.pitch) * x - 0.75, stack.top * y, 1.5, (stack.bottom - stack.top) * y);
    }
  }

  onMap(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - bounds.left) / this.scale.x, (event.clientY - bounds.top) / this.scale.y];
    const stack = this.whole.stacks.filter(({ left }) => x >= left - 4).at(-1) ?? this.whole.stacks[0];
    const group = stack.groups.find(({ top, bottom }) => y >= top && y < bottom);
    this.open(group ? group.target : "");
  }
}

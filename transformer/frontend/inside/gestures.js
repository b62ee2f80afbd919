// Pointer, wheel and keyboard input: zoom in and out, choose a token, step through Play.

import { isComposing } from "../dom.js";
import { followPointer } from "../pointing.js";
import { elementAt } from "./layout.js";

const WHEEL_MS = 350; // between two levels

export class PictureGestures {
  /** instrument: an `InsideInstrument`, whose picture, parts and play are there. */
  constructor(instrument) {
    this.instrument = instrument;
    const { parts, picture: { marks } } = instrument;
    parts.root.addEventListener("keydown", (event) => instrument.pass && this.onKey(event));
    followPointer(marks, (event) => (event ? instrument.point(this.thing(event), event) : instrument.point(null))); // of a tap, before it opens that
    marks.addEventListener("click", (event) => instrument.enter(this.thing(event)));
    parts.stage.addEventListener("contextmenu", (event) => this.openMenu(event));
    parts.stage.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
  }

  /** What lies under the pointer. */
  thing(event) {
    const { picture: { marks }, layout } = this.instrument;
    const bounds = marks.getBoundingClientRect();
    return layout ? elementAt(layout, event.clientX - bounds.left, event.clientY - bounds.top) : null;
  }

  // Of a block, or a part of it that can be seen: what can be changed there.
  openMenu(event) {
    const { instrument } = this;
    const { group, part, row } = this.thing(event) ?? {};
    if (group?.kind !== "block" || !instrument.changing.change) return;
    event.preventDefault();
    instrument.open((group.isOpen && (row?.name ?? part?.id)) || group.id);
    instrument.changing.open();
  }

  // The page scrolls; a pinch, or the wheel with Ctrl, zooms.
  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (performance.now() < (this.wheeled ?? 0)) return;
    this.wheeled = performance.now() + WHEEL_MS;
    if (event.deltaY > 0) this.instrument.goUp();
    else this.instrument.enter(this.thing(event));
  }

  onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return;
    if (this.escape(event) || this.playKey(event) || this.arrow(event)) event.preventDefault();
  }

  escape({ key }) {
    const { play, tip } = this.instrument;
    if (key !== "Escape") return false;
    tip.hide();
    if (play.moment !== null) play.leave();
    else this.instrument.goUp();
    return true;
  }

  // Space plays where it presses no button; while Play is on, the arrows step.
  playKey({ key, target }) {
    const { parts, play } = this.instrument;
    if (!parts.stage.contains(target) && !parts.play.contains(target)) return false;
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (key === " " && !target.closest("button, input, select")) play.toggled();
    else if (play.moment !== null && steps[key] && target !== play.slider) play.step(steps[key]);
    else return false;
    return true;
  }

  // Left and right lead from token to token, up and down from name to name.
  arrow({ key, target }) {
    const { parts, names, writing, token: selected } = this.instrument;
    if (!parts.stage.contains(target)) return false;
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const upwards = { ArrowUp: 1, ArrowDown: -1 }[key];
    const { token, stack } = target.dataset;
    if (sideways && token !== undefined) {
      this.instrument.pickToken(stack, (stack === writing.prefix ? selected : Number(token)) + sideways);
      names.focusToken(stack);
    } else if (sideways) this.instrument.pickToken(writing.prefix, selected + sideways);
    else if (key === "Home") this.instrument.pickToken(writing.prefix, 0);
    else if (key === "End") this.instrument.pickToken(writing.prefix, writing.count - 1);
    else if (upwards) names.step(upwards);
    else return false;
    return true;
  }
}

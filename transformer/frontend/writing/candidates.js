// The candidates at the selected position as buttons with bars: model probability and sampling probability.
import { attribute, node, property, put } from "../dom.js";
import { chance } from "./token_descriptions.js";

const ROWS = 10;

export class Candidates {
  /** @type {HTMLElement} */ title;
  /** @type {HTMLElement} */ hint;

  /** onPick(id): this token is to be written there instead. */
  constructor({ candidates, title, hint }, onPick) {
    Object.assign(this, { title, hint });
    this.rows = Array.from({ length: ROWS }, () => this.makeRow(candidates));
    candidates.addEventListener("click", (event) => {
      if (!this.shown) return;
      const { locked, found } = this.shown;
      const list = found.map(({ id }) => id).join();
      // The second half of a double click was meant for the list that the first one met.
      if (event.detail <= 1) this.met = list;
      const row = this.rows.findIndex(({ button }) => button.contains(event.target));
      if (row >= 0 && !locked && found[row]?.chosen === false && list === this.met) onPick(found[row].id);
    });
  }

  makeRow(parent) {
    const button = node("button", "", node("li", "", parent));
    button.type = "button";
    const label = node("span", "label", button);
    const track = node("span", "track", button);
    const row = {
      button, label, model: node("i", "model", track), sampled: node("i", "sampled", track),
      value: node("span", "value", button), tick: node("span", "tick", button), more: node("span", "more", button),
    };
    row.tick.setAttribute("aria-hidden", "true");
    return row;
  }

  /**
   * found: [{ id, label, probability, sampled, chosen }]; sampled undefined while it isn't known, 0 for what is cut off.
   * locked: none can be written now; next: the place is the one after the text, where nothing is replaced.
   */
  update({ title, found, locked, next }) {
    this.shown = { found, locked };
    put(this.title, title);
    put(this.hint, next ? "Click one to write it." : "Click one to continue from it instead.");
    this.rows.forEach(({ button, label, model, sampled, value, tick, more }, row) => {
      const one = found[row];
      button.style.visibility = one || !found.length ? "" : "hidden"; // a missing row keeps its place
      button.style.opacity = found.length ? "" : "0"; // while none is known yet, a button keeps the focus, too
      // Not `disabled`: a button that can't be used for a moment would lose the focus to the page.
      attribute(button, "aria-disabled", String(locked || !one));
      if (!one) return;
      put(label, one.label);
      put(value, chance(one.probability));
      put(tick, one.chosen ? "✓" : "");
      property(model, "--share", String(one.probability));
      property(sampled, "--share", String(one.sampled ?? 0));
      button.classList.toggle("chosen", one.chosen);
      button.classList.toggle("cut", one.sampled === 0);
      // The button's name is what can be seen on it, and this after it: whoever speaks to it says what they see.
      const sampling = one.sampled === undefined ? "" : one.sampled === 0 ? ", cut off by the sampling" : `, ${chance(one.sampled)} as sampled`;
      const words = `from the model${sampling}, id ${one.id}${one.chosen ? ", written" : ""}`;
      put(more, ` ${words}`);
      attribute(button, "title", locked || one.chosen ? words : `${words}. Write this${next ? "" : " instead"} and go on from here.`);
    });
  }

  /** What is shown, for a picture. */
  get rowsShown() {
    return this.shown?.found ?? [];
  }
}

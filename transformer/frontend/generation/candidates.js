// The candidates at the selected position as buttons with bars: model probability and sampling probability.
import { attribute, node, property, put } from "../dom.js";
import { percent } from "../number_format.js";

const ROWS = 10;

export class Candidates {
  /** @type {HTMLElement} */ title;
  /** @type {HTMLElement} */ hint;

  /** onPick(id): write this token instead. */
  constructor({ candidates, title, hint }, onPick) {
    Object.assign(this, { title, hint });
    this.rows = Array.from({ length: ROWS }, () => this.makeRow(candidates));
    candidates.addEventListener("click", (event) => {
      if (!this.shown) return;
      const { locked, candidates } = this.shown;
      const list = candidates.map(({ id }) => id).join();
      // Ignore the second click of a double click: the list has changed in between.
      if (event.detail <= 1) this.met = list;
      const row = this.rows.findIndex(({ button }) => button.contains(event.target));
      if (row >= 0 && !locked && candidates[row]?.chosen === false && list === this.met) onPick(candidates[row].id);
    });
  }

  makeRow(parent) {
    const button = node("button", "", node("li", "", parent));
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
   * candidates: [{ id, label, probability, sampled, chosen }]; sampled: undefined until it is known, 0 if cut off.
   * locked: none can be written now; next: the position is the one after the text.
   */
  update({ title, hint, candidates, locked, next }) {
    this.shown = { candidates, locked };
    put(this.title, title);
    put(this.hint, hint);
    this.rows.forEach(({ button, label, model, sampled, value, tick, more }, row) => {
      const candidate = candidates[row];
      button.style.visibility = candidate || !candidates.length ? "" : "hidden"; // a missing row keeps its place
      button.style.opacity = candidates.length ? "" : "0"; // a transparent button keeps the focus until candidates are known
      // Not `disabled`: a disabled button loses the focus.
      attribute(button, "aria-disabled", String(locked || !candidate));
      if (!candidate) return;
      put(label, candidate.label);
      put(value, percent(candidate.probability));
      put(tick, candidate.chosen ? "✓" : "");
      property(model, "--share", String(candidate.probability));
      property(sampled, "--share", String(candidate.sampled ?? 0));
      button.classList.toggle("chosen", candidate.chosen);
      button.classList.toggle("cut", candidate.sampled === 0);
      // The accessible name begins with the visible text, for people who use speech input.
      const sampling = candidate.sampled === undefined ? "" : candidate.sampled === 0 ? ", cut off by the sampling" : `, ${percent(candidate.sampled)} as sampled`;
      const words = `from the model${sampling}, id ${candidate.id}${candidate.chosen ? ", written" : ""}`;
      put(more, ` ${words}`);
      attribute(button, "title", locked || candidate.chosen ? words : `${words}. Write this${next ? "" : " instead"} and go on from here.`);
    });
  }

  get rowsShown() {
    return this.shown?.candidates ?? [];
  }
}

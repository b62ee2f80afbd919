// The tokens that could stand at the selected place, as buttons with bars: the model's odds, and as sampled.
import { attribute, node, property, put } from "../../../../transformer/instrument/dom.js";
import { percent } from "./text.js";

const ROWS = 10;

export class Candidates {
  /** onPick({index, id}): this token is to be written at that place instead. */
  constructor({ candidates, title }, onPick) {
    this.title = title;
    this.rows = Array.from({ length: ROWS }, () => this.makeRow(candidates));
    candidates.addEventListener("click", (event) => {
      const row = this.rows.findIndex(({ button }) => button.contains(event.target));
      const { candidates: choice, live } = this.data;
      // The second click of a double click must not write the token twice: `asked` holds until new data come.
      if (row < 0 || choice.chosen === row || live || this.asked) return;
      this.asked = true;
      onPick({ index: choice.index, id: choice.id[row] });
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

  update(data) {
    this.data = data;
    this.asked = false;
    const { candidates, live } = data;
    put(this.title, candidates.title);
    this.rows.forEach(({ button, label, model, sampled, value, tick, more }, row) => {
      const there = row < candidates.id.length;
      const chosen = candidates.chosen === row;
      button.style.visibility = there ? "" : "hidden"; // a missing row keeps its place
      button.disabled = live || !there;
      if (!there) return;
      const [p, s] = [candidates.probability[row], candidates.sampling[row]];
      put(label, candidates.label[row]);
      put(value, percent(p));
      put(tick, chosen ? "✓" : "");
      property(model, "--share", String(p));
      property(sampled, "--share", String(s));
      button.classList.toggle("chosen", chosen);
      button.classList.toggle("cut", s === 0);
      // The button's name is what can be seen on it, and this after it: whoever speaks to it says what they see.
      const words = `from the model, ${s === 0 ? "cut off by the sampling" : `${percent(s)} as sampled`}`
        + `, id ${candidates.id[row]}${chosen ? ", written" : ""}`;
      put(more, ` ${words}`);
      attribute(button, "title", live || chosen ? words : `${words}. Write this instead and go on from here.`);
    });
  }
}

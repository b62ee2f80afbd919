// The view of a text while a model writes it. Its nodes are made once, then kept and changed in place for every new
// `data`, so that nothing flickers and nothing on the page moves.
// Whatever comes from `data` reaches the page through textContent, attributes and CSS properties, never as HTML.
import { boxOf } from "../../../../transformer/instrument/box.js";
import { attribute, put, withView } from "../../../../transformer/instrument/dom.js";
import { Tip } from "../../../../transformer/instrument/tip.js";
import { Candidates } from "./candidates.js";
import { Picture } from "./picture.js";
import { Strip } from "./strip.js";
import { indexOf, Text } from "./text.js";
import { Timeline } from "./timeline.js";

const SEND_EVERY_MS = 120; // a dragged slider sends many selections: only so often, and always the last one
const ECHO_MS = 5000; // how long a selection made here stands before Python has answered it

class View {
  constructor(parts) {
    this.parts = parts;
    this.tip = new Tip(parts.tip);
    const select = (index) => this.text.data.flags[index] !== "p" && this.select(index);
    this.strip = new Strip(parts, select, () => this.tip.hide());
    this.timeline = new Timeline(parts, (index) => {
      this.select(index);
      this.strip.reveal(index);
    });
    this.candidates = new Candidates(parts, (token) => this.send("pick", token));
    this.picture = new Picture(parts);
    this.listen(parts);
  }

  listen({ root, strip, columns }) {
    strip.addEventListener("focusin", (event) => this.describe(event.target, indexOf(event)));
    for (const area of [strip, columns]) {
      area.addEventListener("pointerover", (event) => this.describe(event.target.closest("[data-index]"), indexOf(event)));
      area.addEventListener("pointerleave", () => this.tip.hide());
    }
    strip.addEventListener("focusout", () => this.tip.hide());
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.tip.hide());
  }

  describe(target, index) {
    if (!target || index === null || index >= this.text.length) this.tip.hide();
    else this.tip.show(target, this.text.describe(index));
  }

  // Shown at once, sent at most every SEND_EVERY_MS; data that were on their way meanwhile don't take it back.
  select(index) {
    if (index === this.selected) return;
    this.wanted = { index, until: performance.now() + ECHO_MS };
    this.showSelection();
    if (this.timer) return;
    this.send("select", index);
    let sent = index;
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.parts.root.isConnected && this.wanted && this.wanted.index !== sent) {
        sent = this.wanted.index;
        this.send("select", sent);
      }
    }, SEND_EVERY_MS);
  }

  update(data) {
    const started = performance.now();
    this.text = new Text(data);
    if (this.wanted && (data.selected === this.wanted.index || started > this.wanted.until)) this.wanted = null;
    this.strip.update(this.text);
    this.showSelection();
    this.picture.update(this.text);
    this.candidates.update(data);
    this.showStatus(data);
    this.tip.hideIfGone();
    if (data.live || data.selected >= this.text.length) this.strip.follow();
    this.parts.root.dataset.updateMs = (performance.now() - started).toFixed(2);
  }

  showSelection() {
    const { data } = this.text;
    this.selected = this.wanted?.index ?? data.selected;
    this.strip.showSelection(this.selected, data.live);
    this.timeline.show(this.text, this.selected);
    put(this.parts.details, this.text.describe(this.selected).join(" · "));
  }

  showStatus({ live, status }) {
    // Eight announcements a second would drown a screen reader: it hears the first and the last.
    attribute(this.parts.status, "aria-live", live && this.wasLive ? "off" : "polite");
    this.wasLive = live;
    put(this.parts.status, status);
  }
}

// The view is mounted once; live_text_feed.js puts the data into the box of the same name, before or after this runs.
// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  withView(parentElement, (parts) => new View(parts), (view) => {
    const box = boxOf(data.name);
    view.send = (event, value) => box.send(event, value);
    box.deliver = () => view.update(box.data);
    if (box.data) box.deliver();
  });
}

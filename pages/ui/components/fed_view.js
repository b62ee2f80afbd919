// Streamlit's side of an instrument that is fed: the view. It stays as long as its page does; the outline of a pass comes
// with it, everything else through the box that it shares with its feed (fed_feed.js).
import { boxOf } from "../../../transformer/frontend/box.js";
import { topicOf } from "../../../transformer/frontend/changing.js";
import { readRecording } from "../../../transformer/frontend/recording.js";
import { unknownToSession } from "./tab/last.js";
import { pageLink } from "./page_link.js";
import { Reporter } from "./reporter.js";

const PATIENCE_MS = 1500; // for which nothing is asked, where the page has to hear first what its tab showed before

export class FedView {
  /**
   * make(root, host): the instrument, which has `chosen`, begin(outline, chosen), add(parts), turnTo(chosen) and draw(), and
   * whose host is { select(chosen), want(parts), change({ add, remove }), turn(place) }; turn leaves for another page, which is
   * to show a place of its own, and is missing where there is none. other: that page's title.
   */
  constructor(parts, make, other) {
    Object.assign(this, { parts, make, other });
  }

  attach(name) {
    this.box = boxOf(name);
    this.found = this.box.feed; // perhaps of a view that went with its page: it will do until the next run's comes
    this.reporter = new Reporter(this.parts.root, (value) => this.box.send?.("chosen", value));
    this.instrument = this.make(this.parts.root, {
      select: (chosen) => this.reporter.report(() => chosen),
      want: (parts) => this.want(parts),
      turn: pageLink(this.other) && ((place) => this.turn(place)),
      change: (change) => {
        const wish = { ...change, model: this.model };
        this.reporter.act(topicOf(change), () => ({ ...this.instrument.chosen, change: wish }));
      },
    });
    this.box.deliver = () => this.deliver();
  }

  // The feed may come before the outline that it belongs to, or after it.
  update(bytes) {
    const recording = readRecording(bytes);
    const { id, name } = recording.metadata;
    if (!this.instrument) this.attach(name);
    if (id === this.id) this.instrument.draw(); // another theme
    else {
      this.id = id;
      this.outline = recording;
      this.begun = false;
    }
    this.deliver();
  }

  want(parts) {
    if (this.isPatient) this.wanted = parts;
    else if (this.reporter.isOpen) this.box.send?.("want", { id: this.id, parts });
  }

  turn(place) {
    const { chosen } = this.instrument;
    this.reporter.act("turn", () => ({ ...chosen, turn: place }));
    pageLink(this.other)?.click(); // which waits until that has been heard
  }

  waitIf(patient) {
    clearTimeout(this.patience);
    this.isPatient = patient;
    this.wanted = undefined;
    if (patient) this.patience = setTimeout(() => {
      this.isPatient = false;
      if (this.wanted) this.want(this.wanted);
    }, PATIENCE_MS);
  }

  deliver() {
    const { feed } = this.box;
    if (!feed || feed.metadata.id !== this.id) return;
    const { chosen, serial, run, seen } = feed.metadata;
    const isOtherRun = run !== this.run;
    this.reporter.heard(seen, isOtherRun);
    if (isOtherRun) this.waitIf(feed.metadata.patient && unknownToSession() !== undefined);
    this.run = run;
    if (!this.begun) {
      this.begun = true;
      const { title } = this.outline.metadata;
      this.reporter.forget(title === this.model);
      this.model = title;
      this.instrument.begin(this.outline, chosen);
    } else if ((serial > this.serial || (this.isFound && isOtherRun)) && !this.reporter.isAhead) this.instrument.turnTo(chosen);
    this.serial = serial;
    this.isFound = feed === this.found;
    if (this.taken !== feed) this.instrument.add(feed);
    this.taken = feed;
    this.reporter.proceed();
  }
}

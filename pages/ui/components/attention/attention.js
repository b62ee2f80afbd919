// Streamlit's side of the instrument: the view. It stays as long as its page does; the outline of a pass comes with it,
// everything else through the box that it shares with the feed (attention_feed.js).
import { AttentionInstrument } from "../../../../transformer/instrument/attention/instrument.js";
import { boxOf } from "../../../../transformer/instrument/box.js";
import { withView } from "../../../../transformer/instrument/dom.js";
import { readRecording } from "../../../../transformer/instrument/recording.js";
import { hasLostParameters } from "../address/last.js";
import { Reporter } from "../reporter.js";

const PATIENCE_MS = 1500; // for which nothing is asked, where the page has to hear first what its tab showed before

class View {
  constructor(parts) {
    this.parts = parts;
  }

  attach(name) {
    this.box = boxOf(name);
    this.found = this.box.feed; // perhaps of a view that went with its page: it will do until the next run's comes
    this.reporter = new Reporter(this.parts.root, (value) => this.box.send?.("chosen", value));
    this.instrument = new AttentionInstrument(this.parts.root, {
      select: (chosen) => this.reporter.report(() => chosen),
      want: (parts) => performance.now() >= (this.patientUntil ?? 0) && this.reporter.isOpen && this.box.send?.("want", { id: this.id, parts }),
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

  waitIf(patient) {
    this.patientUntil = patient ? performance.now() + PATIENCE_MS : 0;
    if (patient) setTimeout(() => this.instrument.fetcher.arrived(), PATIENCE_MS + 50);
  }

  deliver() {
    const { feed } = this.box;
    if (!feed || feed.metadata.id !== this.id) return;
    const { chosen, serial, run, seen } = feed.metadata;
    const isOtherRun = run !== this.run;
    this.reporter.heard(seen, isOtherRun);
    if (isOtherRun) this.waitIf(feed.metadata.patient && hasLostParameters());
    this.run = run;
    if (!this.begun) {
      this.begun = true;
      this.reporter.forget();
      this.instrument.begin(this.outline, chosen);
    } else if ((serial > this.serial || (this.isFound && isOtherRun)) && !this.reporter.isAhead) this.instrument.turnTo(chosen);
    this.serial = serial;
    this.isFound = feed === this.found;
    if (this.taken !== feed) this.instrument.add(feed);
    this.taken = feed;
    this.reporter.proceed();
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data));
}

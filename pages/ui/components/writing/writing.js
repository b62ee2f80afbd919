// Streamlit's side of the instrument: the view. It stays as long as its page does; all data come through the box that it shares
// with the feed (writing_feed.js).
import { boxOf } from "../../../../transformer/frontend/box.js";
import { withView } from "../../../../transformer/frontend/dom.js";
import { WritingInstrument } from "../../../../transformer/frontend/writing/instrument.js";
import { pageLink } from "../page_link.js";
import { Reporter } from "../reporter.js";

const OTHER = "Inside"; // the page that shows how a logit came about
const PATIENCE_MS = 2500; // for which a text is waited for, before one that is there already is taken up

class View {
  constructor(parts) {
    this.parts = parts;
  }

  attach(name) {
    this.box = boxOf(name);
    const { feed } = this.box;
    // What an earlier view had, which went with its page, is of that time: the text of this one is on its way.
    if (feed?.wasTaken) {
      this.taken = feed;
      setTimeout(() => this.taken === feed && this.deliver(), PATIENCE_MS);
    }
    const event = (act, more) => (count) => ({ ...this.instrument.state(count), act, ...more });
    this.instrument = new WritingInstrument(this.parts.root, {
      act: (name, more) => this.reporter.act(name, event(name, more)),
      report: () => this.reporter.report(event("rest")),
      note: () => this.reporter.note(event("rest")),
      isHeard: () => !this.reporter.isBusy,
      turn: pageLink(OTHER) && (() => pageLink(OTHER)?.click()), // which waits until all has been heard
    });
    this.reporter = new Reporter(this.parts.root, (value) => this.box.send?.("tell", value), {
      leave: () => this.instrument.leave(), wake: () => this.wake(),
    });
    this.box.deliver = () => this.box.feed !== this.taken && this.deliver();
  }

  // Called again in another theme, too.
  update({ name }) {
    if (!this.instrument) this.attach(name);
    else this.instrument.draw();
    if (this.box.feed) this.box.deliver();
  }

  deliver() {
    const { feed } = this.box;
    this.taken = feed;
    feed.wasTaken = true;
    const { id, serial, run, heard } = feed.metadata;
    const isOtherRun = run !== this.run;
    if (this.id !== undefined && id !== this.id) this.reporter.forget();
    this.id = id;
    this.run = run;
    this.reporter.heard(heard, isOtherRun);
    const turns = serial > this.serial && !this.reporter.isAhead;
    this.serial = serial;
    if (!this.instrument.take(feed, turns)) this.instrument.host.act("again");
    this.reporter.proceed();
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => {
    view.wake = () => setTriggerValue("wake", Date.now()); // it stands in the page itself: the whole page runs
    view.update(data);
  });
}

// The whole forward pass as one picture. The host is told what is looked at, and asked for what isn't there yet.

export class InsideInstrument {
  /** host: { select(chosen), want(parts) }. */
  constructor(parent, host) {
    this.parent = parent;
    this.host = host;
    this.chosen = {};
  }

  /** A new pass. chosen: what is looked at first. */
  begin(recording, chosen) {
    this.outline = recording;
    this.turnTo(chosen);
  }

  /** Parts that were asked for. */
  add(recording) {
    this.newest = recording;
  }

  /** What somebody else has decided to look at, for example a link. */
  turnTo(chosen) {
    this.chosen = { ...this.chosen, ...chosen };
  }

  /** Draw everything again, in the page's present size and colours. */
  draw() {}
}

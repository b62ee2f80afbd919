// Listens to the events of this tab's room, and asks for a run where what is drawn is of another version of it.
//
// A run of the page takes what follows the room away and puts it there anew, and events come at any time between. So the
// tab has one stream, which whoever is mounted begins if there is none; it outlives those it is for by some seconds.
import { put } from "../../../../transformer/frontend/dom.js";
import { eventsOf } from "../../../../transformer/frontend/api.js";
import { pageChange } from "../../../../transformer/frontend/page_change.js";

/** The version of a room that there isn't, or that this tab isn't in. */
const GONE = "gone";
const FIRST_WAIT = 500, LONGEST_WAIT = 8_000;
/** Milliseconds after which a run is asked for once more, if none has been drawn by then. */
const AGAIN = 3_000;
/** Milliseconds after which a version that was just drawn is compared: the stream may be a moment behind. */
const SETTLES = 250;
const TICK = 1_000;
/** Milliseconds without an event after which a connection counts as lost, and the page as offline: some come every four seconds. */
const SILENCE = 10_000;
/** Milliseconds that what was taken off the page may take to come back. */
const UNMOUNTED = 20_000;
const OFFLINE = "Offline: this page can't reach the room at the moment. It tries again by itself.";

/** What follows the room, by the element that it stands in. */
const followers = new Map();
/** @type {Stream | null} */
let stream = null;

class Stream {
  constructor(membership) {
    this.membership = membership;
    /** The room's version; null before it is known. */
    this.version = null;
    /** What the server says of why it gives no stream. */
    this.problem = "";
    this.heardAt = this.triedAt = Date.now();
    this.isOver = false;
    /** Ends the pause before the next try. */
    this.goOn = () => {};
    this.watching = setInterval(() => this.watch(), TICK);
    this.read();
  }

  async read() {
    for (let wait = FIRST_WAIT; !this.isOver; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      this.connection = new AbortController();
      this.triedAt = Date.now();
      try {
        const response = await fetch(new URL("api/rooms/events", document.baseURI), {
          headers: { "HeadsUp-Room": this.membership }, cache: "no-store", signal: this.connection.signal,
        });
        if (response.status === 404) this.hear(GONE);
        this.problem = response.ok ? "" : (await response.json()).error;
        if (response.ok) {
          for await (const { event, data } of eventsOf(response)) {
            wait = FIRST_WAIT / 2;
            this.hear(event === "room" ? data.version : this.version);
          }
        }
      } catch {
        this.problem = ""; // no connection, or one that was lost: it is tried again
      } finally {
        this.connection.abort();
      }
      await this.pause(wait * (0.5 + Math.random() / 2)); // so that a class doesn't come back all at once
    }
  }

  hear(version) {
    if (this.isOver) return;
    this.heardAt = Date.now();
    this.version = version;
    for (const follower of followers.values()) follower.compare();
    showStatus();
  }

  get isSilent() {
    return Date.now() - this.heardAt > SILENCE;
  }

  /** Begin anew where nothing is heard, and end where nobody follows. Timers of a phone that sleeps come late. */
  watch() {
    for (const [parent, follower] of followers) if (follower.isGone) followers.delete(parent);
    if (!followers.size) this.end();
    else if (this.isSilent && Date.now() - this.triedAt > SILENCE) this.connection.abort();
    showStatus();
  }

  /** Try again at once. */
  wake() {
    this.watch();
    this.goOn();
  }

  pause(milliseconds) {
    return new Promise((resolve) => {
      this.goOn = () => resolve(null);
      setTimeout(this.goOn, milliseconds);
    });
  }

  end() {
    this.isOver = true;
    clearInterval(this.watching);
    this.connection.abort();
    if (stream === this) stream = null;
  }
}

class Follower {
  constructor(parent) {
    this.parent = parent;
  }

  show(data, trigger) {
    this.drawn = data.version;
    this.ticks = data.left > 0;
    this.trigger = trigger;
    this.isAsked = false;
    this.seenAt = Date.now();
    this.after(this.ticks ? TICK : SETTLES);
  }

  get isBehind() {
    const version = stream?.version ?? null;
    return version !== null && version !== this.drawn;
  }

  get isGone() {
    if (this.parent.isConnected) this.seenAt = Date.now();
    return Date.now() - this.seenAt > UNMOUNTED;
  }

  /** The room is heard of: ask for a run at once, unless one is on its way. */
  compare() {
    if (this.isBehind && !this.isAsked) this.ask();
  }

  ask() {
    this.isAsked = true;
    if (this.parent.isConnected && !pageChange().isUnderWay(performance.now())) this.trigger("changed", true);
    this.after(AGAIN);
  }

  after(milliseconds) {
    clearTimeout(this.later);
    this.later = setTimeout(() => followers.has(this.parent) && (this.ticks || this.isBehind) && this.ask(), milliseconds);
  }
}

/** Say that the page can't follow its room, or no longer, in one place. */
function showStatus() {
  const sentence = stream?.isSilent ? stream.problem || OFFLINE : "";
  const first = [...followers.keys()].find((parent) => parent.isConnected);
  for (const parent of followers.keys()) {
    const root = parent.querySelector("[data-part=root]");
    if (root) put(root, parent === first && followers.get(parent).drawn ? sentence : ""); // where nothing is drawn, the page says it
  }
}

let listens = false;

function listen() {
  if (listens) return;
  listens = true;
  const wake = () => stream?.wake();
  addEventListener("online", wake);
  addEventListener("pageshow", wake);
  document.addEventListener("visibilitychange", wake);
}

export function mountRoomFollower({ data, parentElement, setTriggerValue }) {
  listen();
  let follower = followers.get(parentElement);
  if (!follower) followers.set(parentElement, (follower = new Follower(parentElement)));
  if (stream?.membership !== data.membership) {
    stream?.end();
    stream = new Stream(data.membership);
  }
  follower.show(data, setTriggerValue);
}

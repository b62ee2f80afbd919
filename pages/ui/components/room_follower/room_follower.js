// Listens to the events of this tab's room, and asks for a run where what is drawn is of another version of it.
import { eventsOf } from "../../../../transformer/frontend/generation/server_sent_events.js";
import { pageChange } from "../../../../transformer/frontend/page_change.js";

/** The version of a room that there isn't, or that this tab isn't in. */
const GONE = "gone";
const FIRST_WAIT = 500, LONGEST_WAIT = 8_000;
/** Milliseconds after which a run is asked for once more, if none has drawn the version by then. */
const AGAIN = 3_000;
/** Milliseconds without an event after which a connection counts as lost. */
const SILENCE = 15_000;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What follows the room, by the element that it stands in. */
const followers = new Map();
let stream = null;

class Stream {
  constructor(membership) {
    this.membership = membership;
    /** The room's version; null before it is known. */
    this.version = null;
  }

  get isFollowed() {
    for (const [parent] of followers) if (!parent.isConnected) followers.delete(parent);
    return stream === this && followers.size > 0;
  }

  async read() {
    for (let wait = FIRST_WAIT; this.isFollowed; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      const connection = new AbortController();
      let silence = setTimeout(() => connection.abort(), SILENCE);
      try {
        const response = await fetch(new URL("api/rooms/events", document.baseURI), {
          headers: { "HeadsUp-Room": this.membership }, cache: "no-store", signal: connection.signal,
        });
        if (response.status === 404) this.tell(GONE);
        if (response.ok) {
          for await (const { event, data } of eventsOf(response)) {
            clearTimeout(silence);
            if (!this.isFollowed) return;
            silence = setTimeout(() => connection.abort(), SILENCE);
            wait = FIRST_WAIT / 2;
            if (event === "room") this.tell(data.version);
          }
        }
      } catch {
        // No connection, or one that was lost: it is tried again.
      } finally {
        clearTimeout(silence);
        connection.abort();
      }
      await pause(wait * (0.5 + Math.random() / 2)); // so that a class doesn't come back all at once
    }
    if (stream === this) stream = null;
  }

  tell(version) {
    this.version = version;
    for (const follower of followers.values()) follower.compare();
  }
}

class Follower {
  show(data, trigger) {
    this.drawn = data.version;
    this.trigger = trigger;
    clearTimeout(this.later);
    clearTimeout(this.tick);
    if (data.left) this.tick = setTimeout(() => this.ask(), 1_000);
    this.asked = null;
    this.compare();
  }

  compare() {
    const version = stream?.version ?? null;
    if (version === null || version === this.drawn || version === this.asked) return;
    this.asked = version;
    this.ask();
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.asked = null;
      this.compare();
    }, AGAIN);
  }

  ask() {
    if (this.parent.isConnected && !pageChange().isUnderWay(performance.now())) this.trigger("changed", true);
  }

  constructor(parent) {
    this.parent = parent;
  }
}

export function mountRoomFollower({ data, parentElement, setTriggerValue }) {
  let follower = followers.get(parentElement);
  if (!follower) followers.set(parentElement, (follower = new Follower(parentElement)));
  if (stream?.membership !== data.membership) {
    stream = new Stream(data.membership);
    stream.read();
  }
  follower.show(data, setTriggerValue);
}

// Listens to the events of this tab's room, for whatever is mounted: the student's view, or what the teacher's page shows of it.
//
// A run of the page takes what follows the room away and puts it there anew, and events come at any time between. So the
// tab has one stream, which whoever is mounted begins if there is none; it outlives those it is for by some seconds.
import { put } from "../../../../transformer/frontend/dom.js";
import { eventsOf } from "../../../../transformer/frontend/api.js";

/** The version of a room that there isn't, or that this tab isn't in. */
const GONE = "gone";
const FIRST_WAIT = 500, LONGEST_WAIT = 8_000;
export const TICK = 1_000;
/** Milliseconds without an event after which a connection counts as lost, and the page as offline: some come every four seconds. */
const SILENCE = 10_000;
/** Milliseconds that what was taken off the page may take to come back. */
const UNMOUNTED = 20_000;
/** Milliseconds that a request may take; the stream may take for ever. */
const PATIENCE = 10_000;
const OFFLINE = "Offline: this page can't reach the room at the moment. It tries again by itself.";

/**
 * Where a room is asked, and by whom.
 *
 * @typedef {{ code: string, key: string }} Membership
 */

/**
 * What follows the room, by the element that it stands in.
 *
 * @type {Map<any, Follower>}
 */
const followers = new Map();
/** @type {Stream | null} */
let stream = null;
/** The code of the room that the tab has left: what is still drawn of it follows no more. */
let left = "";

/** A request about a room. @param {Membership} membership @param {string} path after the room's code @param {RequestInit} [options] */
export function roomRequest({ code, key }, path, options = {}) {
  const headers = { ...options.headers, ...(key ? { "HeadsUp-Room": key } : {}) };
  return fetch(new URL(`api/rooms/${code}${path}`, document.baseURI), { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), ...options, headers });
}

/**
 * Join a room, or take up a place in it again.
 *
 * @param {{ code: string, key?: string }} room
 * @param {string} [browser]
 * @returns {Promise<Response | null>} null without a connection
 */
export function join({ code, key = "" }, browser = "") {
  left = "";
  return roomRequest({ code: encodeURIComponent(code), key }, "/members", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ browser }),
  }).catch(() => null);
}

/** A part of the page that follows the room. */
export class Follower {
  constructor(parent) {
    this.parent = parent;
    this.seenAt = Date.now();
  }

  get isGone() {
    if (this.parent.isConnected) this.seenAt = Date.now();
    return Date.now() - this.seenAt > UNMOUNTED;
  }

  /** Whether it says where the page is offline. */
  get saysProblems() {
    return true;
  }

  /** Something was heard: the version of the room that there is now. @type {(version: string | null) => void} */
  hear() {}
}

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
        const response = await roomRequest(this.membership, "/events", { signal: this.connection.signal });
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
    for (const follower of [...followers.values()]) follower.hear(version);
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

/** Say that the page can't follow its room, or no longer, in one place. */
function showStatus() {
  const sentence = stream?.isSilent ? stream.problem || OFFLINE : "";
  const first = [...followers.keys()].find((parent) => parent.isConnected);
  for (const parent of followers.keys()) {
    const root = parent.querySelector("[data-part=offline]");
    if (root) put(root, parent === first && followers.get(parent).saysProblems ? sentence : ""); // where nothing is drawn, the page says it
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

/** The version of the tab's room; null before it is known. */
export const roomVersion = () => stream?.version ?? null;

/** The tab leaves its room: it asks no more about it. */
export function endStream() {
  left = stream?.membership.code ?? "";
  stream?.end();
}

/** Whether an element still follows. */
export const isFollowed = (parent) => followers.has(parent);

/**
 * Have a part of the page follow a room; what is told was made for this element by `make` when it began.
 *
 * @template {Follower} Kind
 * @param {Membership} membership
 * @param {any} parent
 * @param {() => Kind} make
 * @returns {Kind}
 */
export function follow(membership, parent, make) {
  listen();
  if (!followers.has(parent)) followers.set(parent, make());
  if (membership.code !== left && (stream?.membership.code !== membership.code || stream.membership.key !== membership.key)) {
    stream?.end();
    stream = new Stream(membership);
  }
  const follower = /** @type {Kind} */ (followers.get(parent));
  follower.seenAt = Date.now();
  return follower;
}

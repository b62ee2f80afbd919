// Tests that a page follows its room whatever happens in whatever order: taken off the page, put there anew, cut off.
import assert from "node:assert/strict";
import { mock, test } from "node:test";

const heard = new Map();
const listen = (name, listener) => heard.set(name, listener);
Object.assign(globalThis, { addEventListener: listen, location: { pathname: "/" }, document: { baseURI: "http://here/", addEventListener: listen } });
mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
const { endStream } = await import("../../pages/ui/components/room_follower/room_stream.js");
const { mountRoomFollower } = await import("../../pages/ui/components/room_follower/room_follower.js");

const LATER = 60; // seconds in which whatever was lost is found
const settled = async () => {
  for (let turn = 0; turn < 6; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** The server, and the network before it. */
class Room {
  version = 0;
  isCut = false;
  refusal = "";
  asked = 0;
  open = new Set();

  /** Nothing comes any more, and nobody is told. */
  cut() {
    this.isCut = true;
    this.open = new Set();
  }

  fetch(signal) {
    this.asked += 1;
    if (this.refusal) return Promise.resolve(Response.json({ error: this.refusal }, { status: 429 }));
    if (this.isCut) return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    let stream, isOver = false;
    const body = new ReadableStream({
      start: (controller) => (stream = controller),
      cancel: () => {
        isOver = true;
        this.open.delete(stream);
      },
    });
    signal.addEventListener("abort", () => {
      this.open.delete(stream);
      if (!isOver) stream.error(new Error("aborted"));
      isOver = true;
    });
    this.open.add(stream);
    this.say(stream, "room", { version: `${this.version}` });
    return Promise.resolve(new Response(body));
  }

  say(stream, event, data) {
    stream.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
  }

  changes() {
    this.version += 1;
    for (const stream of this.open) this.say(stream, "room", { version: `${this.version}` });
  }

  isThere() {
    for (const stream of this.open) this.say(stream, "here", {});
  }

  closes() {
    for (const stream of this.open) stream.close();
    this.open = new Set();
  }
}

let room, number = 0;
globalThis.fetch = (url, options) => {
  const { headers, signal } = /** @type {any} */ (options);
  assert.equal(`${url} ${headers["HeadsUp-Room"]}`, `http://here/api/rooms/ABCDE/events ${room.membership.key}`);
  return room.fetch(signal);
};

/** A page as Streamlit draws it: a run takes away what it has drawn, and draws it anew. */
class Page {
  static last = null;
  drawn = null;
  runs = 0;
  asked = 0;
  wanted = false;

  constructor() {
    Page.last?.takeOff();
    Page.last = this;
    room = new Room();
    room.membership = { code: "ABCDE", key: `${(number += 1)}` };
  }

  takeOff() {
    if (this.element) this.element.isConnected = false;
  }

  putBack() {
    if (this.element) this.element.isConnected = true;
  }

  draw(version = room.version, left = 0) {
    this.takeOff();
    this.status = { textContent: "" };
    this.element = { isConnected: true, querySelector: () => this.status };
    this.drawAgain(version, left);
  }

  /** Into what is there. */
  drawAgain(version = room.version, left = 0) {
    this.drawn = version;
    this.wanted = false;
    const data = { membership: room.membership, version: `${version}`, left };
    mountRoomFollower({ data, parentElement: this.element, setTriggerValue: () => this.ask() });
  }

  ask() {
    this.wanted = true;
    this.asked += 1;
  }

  /** Seconds pass, and what is asked for is drawn. */
  async live(seconds, left = () => 0) {
    for (let second = 0; second < seconds; second += 1) {
      mock.timers.tick(1_000);
      if (second % 3 === 0) room.isThere();
      await settled();
      if (!this.wanted) continue;
      this.runs += 1;
      this.draw(room.version, left());
    }
  }
}

const HAPPENINGS = {
  drawn: (page) => page.draw(),
  "drawn late": (page) => page.draw(Math.max(0, room.version - 1)),
  "drawn again": (page) => page.element && page.drawAgain(),
  "taken off": (page) => page.takeOff(),
  "put back": (page) => page.putBack(),
  "an event": () => room.changes(),
  closed: () => room.closes(),
  "a second": () => mock.timers.tick(1_000),
  "half a minute": () => mock.timers.tick(30_000),
  "cut off": () => room.cut(),
  connected: () => (room.isCut = false),
};

test("whatever happens in whatever order, a page that is drawn sees each later version", async () => {
  const names = Object.keys(HAPPENINGS);
  let orders = [[]];
  for (let length = 0; length < 3; length += 1) orders = orders.flatMap((order) => names.map((name) => [...order, name]));
  let state = 7;
  const some = () => names[(state = (state * 48271) % 2147483647) % names.length];
  orders.push(...Array.from({ length: 150 }, () => Array.from({ length: 25 }, some)));
  for (const order of orders) {
    const page = new Page();
    page.draw();
    for (const name of order) {
      HAPPENINGS[name](page);
      await settled();
      assert.ok(room.open.size <= 1, `${order}: one stream at most`);
    }
    room.isCut = false;
    page.draw(Math.max(0, room.version - 1));
    for (let second = 0; second < LATER && (page.drawn !== room.version || !room.open.size); second += 1) await page.live(1);
    assert.equal(page.drawn, room.version, `${order}: what was missed is seen`);
    room.changes();
    await settled();
    assert.ok(page.wanted, `${order}: the next event asks at once`);
    assert.equal(room.open.size, 1);
    assert.equal(page.status.textContent, "");
  }
});

test("a page that is at rest asks for nothing, and one that nobody follows any more ends its stream", async () => {
  const page = new Page();
  page.draw();
  await page.live(LATER);
  assert.deepEqual([page.runs, room.asked, room.open.size], [0, 1, 1]);
  page.draw(room.version + 1); // which the stream hears of in a moment
  await settled();
  room.changes();
  await settled();
  await page.live(LATER);
  assert.equal(page.runs, 0);
  page.takeOff();
  await page.live(LATER);
  assert.deepEqual([room.asked, room.open.size], [1, 0]);
});

test("while a class votes, a page asks for one run at a time", async () => {
  const page = new Page();
  page.draw();
  for (let vote = 0; vote < 20; vote += 1) {
    room.changes();
    await settled();
    mock.timers.tick(100);
  }
  assert.equal(page.asked, 1);
  page.draw(room.version - 1);
  await page.live(3);
  assert.equal(page.drawn, room.version);
});

test("a run that was lost is asked for again, and one that counts the seconds every second", async () => {
  const page = new Page();
  page.draw();
  await settled();
  room.changes();
  await settled();
  page.wanted = false; // nobody hears it
  await page.live(4);
  assert.deepEqual([page.runs, page.drawn], [1, room.version]);
  page.draw(room.version, 5);
  await page.live(5, () => 5);
  assert.equal(page.runs, 6);
});

test("a connection on which nothing comes is begun anew; until something comes the page says that it is offline", async () => {
  const page = new Page();
  page.draw();
  await page.live(30);
  assert.equal(page.status.textContent, "");
  room.cut();
  room.changes();
  await page.live(6);
  assert.equal(page.status.textContent, "");
  await page.live(30);
  assert.match(page.status.textContent, /^Offline: /);
  assert.ok(room.asked >= 3, "it tries again");
  page.draw(0);
  await page.live(1);
  assert.match(page.status.textContent, /^Offline: /, "what is drawn anew says it, too");
  room.isCut = false;
  const before = room.asked;
  mock.timers.tick(11_000);
  await settled();
  heard.get("online")();
  await settled();
  assert.ok(room.asked > before);
  await page.live(2);
  assert.deepEqual([page.drawn, page.status.textContent], [room.version, ""]);
  room.refusal = "This room is open in too many tabs.";
  room.closes();
  await page.live(30);
  assert.equal(page.status.textContent, room.refusal, "what the server says is said");
  room.refusal = "";
  await page.live(LATER);
  assert.equal(page.status.textContent, "");
});

test("a tab that leaves its room asks no more about it, though what follows it is still on the page", async () => {
  const page = new Page();
  page.draw();
  await page.live(1);
  const { asked } = room;
  endStream();
  page.draw(); // Python draws it once more, until it knows
  await page.live(LATER);
  assert.deepEqual([room.asked, room.open.size], [asked, 0]);
  page.takeOff();
});

// Tests that events of components are heard once and in order, whatever of them a server gets to see.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

globalThis.addEventListener ??= () => {};
const queue = () => import(`../../pages/ui/components/event_queue.js?${Math.random()}`);

/** A random number generator with a seed (Park and Miller, 1988): whole numbers below a bound. */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

/** A server that sees the newest state of each component, but only when it looks. */
class Server {
  session = "one";
  states = new Map();
  numbers = [];
  events = [];

  component(place, key) {
    return { key: place, data: { key }, setStateValue: (name, value) => this.states.set(place, value) };
  }

  look() {
    for (const { session, events } of this.states.values()) {
      for (const { number, component, name, value } of session === this.session ? events : []) {
        if (this.numbers.includes(number)) continue;
        this.numbers.push(number);
        this.events.push([component, name, value]);
      }
    }
  }
}

beforeEach(() => {
  globalThis.headsupEvents = undefined;
});

test("each press is heard once, those of a component in their order, though pages are left and servers are slow", async () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    globalThis.headsupEvents = undefined;
    const below = numbers(seed);
    const { senderOf, sendTo, acknowledge } = await queue();
    const server = new Server();
    const pages = ["/", "/Inside"];
    let page = 0;
    const draw = () => acknowledge({ heard: server.numbers, path: pages[page] }, server.component(`bar ${page}`, "tab"));
    sendTo(server.session);
    draw();
    const sent = [];
    for (let step = 0; step < 30; step += 1) {
      const what = below(8);
      if (what < 4) {
        const key = ["a", "b"][below(2)];
        senderOf(server.component(`${key} of ${page}`, key))("change", step);
        sent.push([key, "change", step]);
      } else if (what < 6) server.look();
      else if (what === 6) draw();
      else {
        page = 1 - page;
        server.states.clear(); // Streamlit drops what the components of a page have reported
        draw();
      }
    }
    draw();
    server.look();
    const of = (events, key) => events.filter(([component]) => component === key);
    for (const key of ["a", "b"]) assert.deepEqual(of(server.events, key), of(sent, key), `seed ${seed}`);
    draw();
    assert.deepEqual(globalThis.headsupEvents.waiting, []);
  }
});

test("nothing is sent before it is known to whom, and a new session gets what the one before hasn't heard", async () => {
  const { senderOf, sendTo, acknowledge } = await queue();
  const server = new Server();
  const attention = server.component("here", "attention");
  senderOf(attention)("change", 1);
  assert.equal(server.states.size, 0);
  sendTo("one");
  server.look();
  assert.deepEqual(server.events, [["attention", "change", 1]]);
  acknowledge({ heard: server.numbers, path: "/" }, server.component("bar", "tab"));
  senderOf(attention)("change", 2);
  server.session = "two";
  server.look();
  assert.equal(server.events.length, 1, "it was meant for another session");
  sendTo("two");
  server.look();
  assert.deepEqual(server.events.slice(1), [["attention", "change", 2]]);
});

test("what says nothing to another page goes with its own", async () => {
  const { senderOf, sendTo, acknowledge } = await queue();
  const server = new Server();
  sendTo("one");
  acknowledge({ heard: [], path: "/" }, server.component("bar", "tab"));
  for (const name of ["navigate", "select", "change"]) senderOf(server.component("here", "inside"))(name, name);
  server.states.clear();
  acknowledge({ heard: [], path: "/Learn" }, server.component("bar", "tab"));
  server.look();
  assert.deepEqual(server.events, [["inside", "change", "change"]]);
});

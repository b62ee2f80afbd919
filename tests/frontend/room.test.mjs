// Tests what a student's page asks of its room, sends to it, and says of it, whatever the network does.
import assert from "node:assert/strict";
import { mock, test } from "node:test";

Object.assign(globalThis, { addEventListener() {}, location: { pathname: "/" }, document: { baseURI: "http://here/", addEventListener() {} } });
mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
const { Student } = await import("../../pages/ui/components/room/room.js");

const STEP = ["heads", 1], OTHER = ["heads", 2];
const settled = async () => {
  for (let turn = 0; turn < 12; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** The API, as far as one member sees it. status: of all answers; 0 where there is no connection. */
class Api {
  status = 200;
  joining = 200;
  voting = 200;
  asked = [];
  shown = { step: STEP, lesson: "", phase: 0, teacher_here: true, shown: false, left: null, votes: [null, null], document: null };

  answer(url, { method = "GET", body = "null" } = {}) {
    const what = `${method} ${url.pathname.replace("/api/rooms/ABCDE", "")}`;
    const sent = JSON.parse(body);
    this.asked.push(what === "POST /votes" ? [sent.step, sent.answer, sent.phase] : what);
    if (!this.status) return Promise.reject(new TypeError("no connection"));
    const status = { "POST /members": this.joining, "POST /votes": this.status === 200 ? this.voting : this.status }[what] ?? this.status;
    if (what === "POST /votes" && status === 200) this.shown.votes[sent.phase] = sent.answer;
    if (what === "POST /members" && status === 200) this.status = 200;
    return Promise.resolve(Response.json(status === 200 ? structuredClone(this.shown) : { error: `refused with ${status}` }, { status }));
  }

  /** What was asked since, but for looks at the room. */
  get sent() {
    return this.asked.splice(0).filter((what) => what !== "GET ");
  }
}

/** A student whose page Python has drawn. */
async function studentOf(drawn = {}, shown = {}) {
  const api = new Api();
  Object.assign(api.shown, shown);
  globalThis.fetch = (url, options) => api.answer(/** @type {any} */ (url), /** @type {any} */ (options));
  const student = new Student({ code: "ABCDE", key: "k" });
  const told = [];
  const part = /** @type {any} */ ({ parent: { isConnected: true }, isGone: false, draw() {} });
  const page = { membership: student.membership, room: { step: STEP, lesson: "", is_revealed: false }, step: STEP, answer: null, document: null, opens: false, ...drawn };
  const draw = async (more = {}) => {
    student.show(part, /** @type {any} */ (Object.assign(page, more)), (event, value) => told.push(value === true ? event : [event, value]));
    await settled();
  };
  await draw();
  return { api, student, told, draw };
}

test("a vote is sent at once, and needs no run of a page", async () => {
  const { api, student, told } = await studentOf();
  await student.vote(1);
  assert.deepEqual([api.sent, told, student.notice], [[[1, 1, 0]], [], ""]);
  assert.deepEqual(student.state(), { id: "heads/1", answered: { first: 1, second: null, discussing: false }, phase: "first", canChange: true, isTeacher: false });
  for (const refused of [409, 400]) {
    api.voting = refused;
    await student.vote(2);
    assert.deepEqual([student.notice, student.unsent], [`refused with ${refused}`, null], "what the room says is said");
  }
  for (const later of [404, 429]) {
    api.voting = later;
    await student.vote(0);
    api.voting = 200;
    api.asked = [];
    student.hear(student.version); // which says no more than that the server is there
    await settled();
    assert.deepEqual(api.sent, [[1, 0, 0]], "and what wasn't heard is sent again");
  }
});

for (const status of [0, 503]) {
  test(`while the room answers ${status || "nothing"}, an answer waits, and is shown as given`, async () => {
    const { api, student } = await studentOf();
    api.status = status;
    await student.vote(1);
    assert.match(student.notice, /^Your room can't be reached at the moment. What you answer is sent when it is back/);
    assert.deepEqual(student.state().answered, { first: 1, second: null, discussing: false });
    await student.vote(0);
    api.status = 200;
    api.asked = [];
    student.hear("later");
    await settled();
    assert.deepEqual([api.sent, student.notice], [[[1, 0, 0]], "Your room is back, and what you answered meanwhile counts in it."]);
    api.status = status;
    api.shown.phase = 1;
    await student.vote(1);
    Object.assign(api, { status: 200, voting: 409 });
    student.hear("much later");
    await settled();
    assert.equal(student.notice, "Your room is back. Voting on what you answered meanwhile is closed.");
  });
}

test("an answer from before the room comes to a question counts in its first vote, once", async () => {
  const { api, student } = await studentOf({ answer: 1 });
  student.hear("1");
  await settled();
  assert.deepEqual([api.sent, student.notice], [[[1, 1, 0]], "Your earlier answer to this question counts in the room, too."]);
  for (const shown of [{ phase: 1 }, { phase: 2 }, { step: OTHER }, { votes: [0, null] }]) {
    assert.deepEqual((await studentOf({ answer: 1 }, shown)).api.sent, [], JSON.stringify(shown));
  }
  const free = await studentOf({ answer: 1, room: { step: null, lesson: "", is_revealed: false } }, { step: null });
  assert.deepEqual([free.api.sent, free.student.notice], [[[1, 1, 0]], ""], "and at once where students navigate freely");
});

test("a run is asked for where Python has drawn another step, or not yet what a reveal opens, and again if it is lost", async () => {
  const seconds = async (count) => {
    for (let second = 0; second < count; second += 1) {
      mock.timers.tick(1000);
      await settled();
    }
  };
  mock.method(Math, "random", () => 0.5); // of the seconds over which a class spreads its runs
  const room = { step: STEP, lesson: "", is_revealed: false };
  for (const [drawn, shown, runs] of /** @type {[any, any, number][]} */ ([
    [{}, {}, 0],
    [{}, { step: OTHER }, 1],
    [{}, { lesson: "own-lesson" }, 1],
    [{ room: null }, {}, 1],
    [{ opens: true }, { phase: 2 }, 1],
    [{ opens: false }, { phase: 2 }, 0],
    [{ opens: true, room: { ...room, is_revealed: true } }, { phase: 2 }, 0],
  ])) {
    const { told, draw } = await studentOf(drawn, shown);
    await seconds(2);
    assert.deepEqual(told, Array(runs).fill("changed"), JSON.stringify([drawn, shown]));
    await seconds(3);
    assert.equal(told.length, runs && 2);
    const now = { step: STEP, lesson: "", ...shown };
    await draw({ room: { step: now.step, lesson: now.lesson, is_revealed: now.phase === 2 } });
    await seconds(60);
    assert.equal(told.length, runs && 2, "what is drawn as the room is asks for nothing");
  }
});

test("whoever has lost their place takes it again; who can't is told why, and asks no more", async () => {
  const { api, student, told } = await studentOf();
  api.status = 404;
  student.hear("gone");
  await settled();
  assert.deepEqual([api.sent, told, student.isAway], [["POST /members"], [], false]);
  for (const [joining, why] of [[404, ""], [409, "refused with 409"], [429, "refused with 429"]]) {
    const other = await studentOf();
    Object.assign(other.api, { status: 404, joining });
    for (const version of ["gone", "1"]) {
      other.student.hear(version);
      await settled();
    }
    assert.deepEqual([other.told, other.api.sent], [[["lost", why]], ["POST /members"]]);
  }
  const leaving = await studentOf();
  await leaving.student.leave();
  leaving.student.hear("gone");
  await settled();
  assert.deepEqual([leaving.told, leaving.api.sent], [["left"], ["DELETE /members"]]);
});

test("what was voted is what the step shows as answered", async () => {
  for (const [phase, votes, first, second, discussing] of [
    [0, [3, null], 3, null, false],
    [1, [3, null], 3, null, true],
    [1, [3, 3], 3, null, false],
    [1, [null, 4], 4, null, false],
    [2, [3, 4], 3, 4, false],
    [2, [3, null], 3, null, false],
  ]) {
    const { student } = await studentOf({}, { phase, votes });
    assert.deepEqual(student.state().answered, { first, second, discussing });
    assert.equal(student.state().canChange, phase !== 2);
  }
  const { student } = await studentOf({}, { shown: true });
  assert.deepEqual([student.state().answered, student.state().canChange], [null, false]);
});

test("a line says where the room is, and counts the seconds by itself", async () => {
  const { student, api } = await studentOf({}, { left: 61.2 });
  assert.equal(student.status(), "First vote: each on their own. 1:02 left.");
  mock.timers.tick(61_000);
  assert.equal(student.status(), "First vote: each on their own. 0:01 left.");
  mock.timers.tick(1_000);
  assert.match(student.status(), /Time is up\.$/);
  for (const [shown, words] of /** @type {[any, RegExp][]} */ ([
    [{ phase: 1, left: null }, /^Discuss it/],
    [{ shown: true }, /^The votes are shown/],
    [{ phase: 2 }, /^The answer is revealed\.$/],
    [{ step: null }, /^Look around/],
    [{ teacher_here: false }, /^The teacher isn't connected/],
  ])) {
    Object.assign(api.shown, shown);
    student.hear(JSON.stringify(shown));
    await settled();
    assert.match(student.status(), words);
  }
});

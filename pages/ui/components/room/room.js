// Draws a room for a student: where it is, the question of its step, and what was revealed. It asks the room's API, and sends
// votes there: no run of a page is needed for them. A run is asked for when the class goes to another step, and once what was
// revealed is on screen, if Python draws a view with it.
import { node, partsOf, put, untranslated } from "../../../../transformer/frontend/dom.js";
import { lastOf } from "../../../../transformer/frontend/lessons/questions.js";
import { StepView } from "../../../../transformer/frontend/lessons/step.js";
import { pageChange } from "../../host/page_change.js";
import { Follower, TICK, endStream, follow, join, roomRequest } from "../room_follower/room_stream.js";
/** @import { State, Step } from "../../../../transformer/frontend/lessons/step.js" */
/** @import { Membership } from "../room_follower/room_stream.js" */

const FIRST = 0, SECOND = 1, REVEALED = 2; // phases of a question, by which:
const PHASES = /** @type {const} */ (["first", "second", "revealed"]);
/** Milliseconds after which a run is asked for once more, if none has been drawn by then. */
const AGAIN = 3_000;
/** Milliseconds within which a class's pages ask for the views that a reveal opens: what was revealed is on screen by then. */
const SPREAD = 1_500;
const AWAY = "Your room can't be reached at the moment. What you answer is sent when it is back, if voting is still open. The right answer is shown when your teacher reveals it.";
const STATUS = ["First vote: each on their own.", "Discuss it with your neighbours, then answer again.", "The answer is revealed."];

/**
 * What the API tells of a room. step: lesson and number; null while students navigate freely. phase, votes: of that step, or of the
 * one on screen. left: seconds. document: of the room's step.
 *
 * @typedef {{ step: Place | null, lesson: string, phase: number, teacher_here: boolean, shown: boolean, left: number | null, votes: any[], document: Step | null }} Shown
 * @typedef {[string, number]} Place
 *
 * What Python has drawn. room: where it had the room, null if it couldn't reach it. step: what is on screen. answer: the visitor's,
 * from wherever. document: of that step, once it is revealed, where it is measured on the visitor's own training. opens: whether a
 * reveal opens something that Python draws.
 *
 * @typedef {{ membership: Membership, room: { step: Place | null, lesson: string, is_revealed: boolean } | null, step: Place | null, answer: any, document: Step | null, opens: boolean }} Drawn
 */

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** @type {Student | null} */
let student = null;

/** A student in a room: of a tab there is one. */
export class Student {
  /** @type {Map<any, StudentsPart>} */ parts = new Map();
  /** @type {Drawn} */ drawn;
  /** @type {(event: "changed" | "lost" | "left", value: any) => void} */ tell;
  /** @type {Shown | null} */ shown = null;
  /** An answer that the room hasn't taken yet. @type {{ step: Place, phase: number, answer: any, isWaiting: boolean } | null} isWaiting: for the room to be back */ unsent = null;
  notice = "";
  /** Of the room, as far as heard. @type {string | null} */ version = null;
  /** Whether it couldn't be asked last. */ isAway = false;
  heardAt = 0;
  isAsking = false;
  isStale = false;
  isOver = false;

  /** @param {Membership} membership */
  constructor(membership) {
    this.membership = membership;
  }

  /** @param {StudentsPart} part @param {Drawn} drawn @param {Student["tell"]} tell */
  show(part, drawn, tell) {
    for (const [parent, { isGone }] of this.parts) if (isGone) this.parts.delete(parent);
    this.parts.set(part.parent, part);
    Object.assign(this, { drawn, tell });
    clearTimeout(this.later);
    this.later = null;
    this.draw();
    this.refresh();
  }

  /** @param {string | null} version */
  hear(version) {
    if (this.version !== version || this.isAway || this.unsent?.isWaiting) this.refresh();
    this.version = version;
  }

  /** Ask where the room is; what is heard meanwhile is asked once more. */
  async refresh() {
    this.isStale = true;
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      while (this.isStale && !this.isOver) {
        this.isStale = false;
        await this.ask();
      }
    } finally {
      this.isAsking = false;
    }
  }

  async ask() {
    const { step } = this.drawn;
    const query = step ? `?${new URLSearchParams({ lesson: step[0], step: String(step[1]) })}` : "";
    const response = await roomRequest(this.membership, query).catch(() => null);
    const shown = response?.ok ? await response.json().catch(() => null) : null;
    this.isAway = shown === null;
    if (this.isAway) {
      if (response?.status === 404) await this.rejoin();
      if (response?.status === 503) this.notice = AWAY;
      this.draw();
      return;
    }
    const before = this.shown;
    this.shown = shown;
    this.heardAt = Date.now();
    if (this.notice === AWAY ? !this.unsent : before?.phase !== this.shown.phase || !this.isAt(before.step)) this.notice = "";
    await this.sendAnswers();
    this.draw();
    this.compare();
  }

  get isOnPage() {
    return [...this.parts.keys()].some((parent) => parent.isConnected);
  }

  /** Take up the place in the room again: it was given to somebody else, or left in another tab. */
  async rejoin() {
    if (!this.isOnPage) return;
    const response = await join(this.membership);
    if (response?.ok) this.isStale = true;
    else if (response && response.status !== 503) {
      this.isOver = true;
      this.tell("lost", response.status === 404 ? "" : (await response.json()).error);
    }
  }

  /** What was answered while the room was away, or before it came to this question. */
  async sendAnswers() {
    const { unsent, drawn: { step, answer }, shown } = this;
    if (unsent?.isWaiting) {
      const { isTaken, isRefused } = await this.post(unsent);
      if (!isTaken && !isRefused) return;
      this.unsent = null;
      this.notice = isTaken ? "Your room is back, and what you answered meanwhile counts in it." : "Your room is back. Voting on what you answered meanwhile is closed.";
      this.isStale = true;
    } else if (!unsent && answer !== null && shown.votes[0] === null && shown.phase === FIRST && (!shown.step || this.isAt(step))) {
      if (!(await this.post({ step, phase: FIRST, answer })).isTaken) return;
      if (this.isAt(step)) this.notice = "Your earlier answer to this question counts in the room, too.";
      this.isStale = true;
    }
  }

  /** Send an answer. One that is neither taken nor refused can be sent again. */
  async post({ step: [lesson, step], phase, answer }) {
    const response = await roomRequest(this.membership, "/votes", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ lesson, step, phase, answer }),
    }).catch(() => null);
    const isRefused = response?.status === 409 || response?.status === 400;
    return { isTaken: Boolean(response?.ok), isRefused, why: isRefused ? (await response.json()).error : "" };
  }

  async vote(answer) {
    const given = { step: this.shown.step, phase: this.shown.phase, answer, isWaiting: false };
    this.notice = "";
    this.unsent = given;
    this.draw();
    const { isTaken, isRefused, why } = await this.post(given);
    given.isWaiting = !isTaken && !isRefused;
    this.notice = given.isWaiting ? AWAY : why;
    if (!given.isWaiting && this.unsent === given) this.unsent = null;
    await this.refresh();
  }

  /** Of the step, as its view draws it. @returns {State} */
  state() {
    const { step, phase, shown, votes: [first, second] } = this.shown;
    const isUnsent = this.unsent && this.isAt(this.unsent.step) && this.unsent.phase === phase;
    const votes = isUnsent ? (phase === FIRST ? [this.unsent.answer, null] : [first, this.unsent.answer]) : [first, second];
    const given = votes.filter((vote) => vote !== null);
    const answered = { first: given[0], second: same(...votes) ? null : given[1] ?? null, discussing: phase === SECOND && votes[1] === null };
    return { id: step.join("/"), answered: given.length ? answered : null, phase: PHASES[phase], canChange: phase !== REVEALED && !shown, isTeacher: false };
  }

  async leave() {
    this.isOver = true;
    endStream();
    await roomRequest(this.membership, "/members", { method: "DELETE" }).catch(() => null);
    this.tell("left", true);
  }

  isAt(step) {
    return same(this.shown?.step, step);
  }

  /** Ask for a run where Python has drawn another step than the room's, or not yet what a reveal opens. */
  compare() {
    const { drawn: { room, opens }, shown } = this;
    if (this.later) return;
    if (!room || !this.isAt(room.step) || room.lesson !== shown.lesson) this.run(0);
    else if (opens && shown.phase === REVEALED && !room.is_revealed) this.run(Math.random() * SPREAD);
  }

  run(wait) {
    this.later = setTimeout(() => {
      if (this.isOver) return;
      if (this.isOnPage && !pageChange().isUnderWay(performance.now())) this.tell("changed", true);
      this.later = setTimeout(() => {
        this.later = null;
        if (!this.isOver && [...this.parts.values()].some(({ isGone }) => !isGone)) this.compare();
      }, AGAIN);
    }, wait);
  }

  draw() {
    clearTimeout(this.ticking);
    for (const part of this.parts.values()) part.draw(this);
    if (this.secondsLeft() > 0) this.ticking = setTimeout(() => this.draw(), TICK);
  }

  secondsLeft() {
    const left = this.shown?.left ?? null;
    return left === null ? null : Math.max(0, Math.ceil(left - (Date.now() - this.heardAt) / 1000));
  }

  status() {
    const { shown } = this;
    if (!shown) return "";
    if (!shown.teacher_here) return "The teacher isn't connected at the moment. The room continues when the teacher is back; leave it to go on by yourself.";
    if (!shown.step) return "Look around. When your teacher opens a step, this page follows.";
    if (shown.shown && shown.phase !== REVEALED) return "The votes are shown. Who hasn't answered still can.";
    const left = this.secondsLeft();
    const time = left === null ? "" : left ? ` ${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left.` : " Time is up.";
    return STATUS[shown.phase] + time;
  }
}

/** One of the places on the page where the room is drawn: the line above, or the step. */
class StudentsPart extends Follower {
  isLine = false;
  /** @type {StepView | null} */ view = null;

  hear(version) {
    student?.hear(version);
  }

  /** @param {Student} student */
  draw(student) {
    const parts = partsOf(this.parent);
    if (!parts.root) return;
    if (this.isLine) drawLine(parts.line, student);
    else this.drawStep(parts.step, student);
  }

  /** @param {HTMLElement} root @param {Student} student */
  drawStep(root, student) {
    const { shown, drawn } = student;
    if (!shown?.document) return;
    if (this.view?.root !== root) this.view = new StepView(root, { send: (answered) => student.vote(lastOf(answered)), checkAgain: () => student.tell("changed", true) });
    const document = student.isAt(drawn.step) && shown.phase === REVEALED && drawn.document ? drawn.document : shown.document;
    this.view.update(document, student.state());
  }
}

function drawLine(line, student) {
  if (!line.firstChild) {
    const name = node("span", "", line);
    name.append("Room ");
    untranslated(node("strong", "", name)).textContent = student.membership.code;
    node("span", "status", line).dataset.part = "status";
    const leave = node("button", "", line);
    Object.assign(leave, { type: "button", textContent: "Leave the room" });
    leave.addEventListener("click", () => student.leave());
    const notice = node("p", "notice", line);
    notice.dataset.part = "notice";
    notice.setAttribute("role", "status");
  }
  put(line.querySelector("[data-part=status]"), student.status());
  put(line.querySelector("[data-part=notice]"), student.notice);
}

export function mountRoom({ data, parentElement, setTriggerValue }) {
  if (!same(student?.membership, data.membership)) {
    if (student) student.isOver = true;
    student = new Student(data.membership);
  }
  const part = follow(data.membership, parentElement, () => new StudentsPart(parentElement));
  part.isLine = data.part === "line";
  student.show(part, data, setTriggerValue);
}

// Draws a step of a lesson: its words, its question, what became of the answer, the explanation, and what to try.

import { attribute, focusedIn, node, put, putHtml, sends } from "../dom.js";
import { ask, lastOf, show, verdict, withAnswer } from "./questions.js";
/** @import { Answered, Question } from "./questions.js" */

/**
 * @typedef {object} Step as pages/ui/views/learn/document.py makes it; texts are HTML
 * @property {string} title
 * @property {string} words
 * @property {Question | null} question
 * @property {string} reveal
 * @property {string} toTry
 * @property {string} problems claims that don't hold on the models there are
 *
 * @typedef {object} State of a visitor at a step
 * @property {string} id of the step
 * @property {Answered | null} answered
 * @property {"first" | "second" | "revealed" | null} phase of a room; null where the visitor alone decides when it is revealed
 * @property {boolean} canChange whether a room still takes another answer
 * @property {boolean} isTeacher whether a class answers, and this visitor doesn't
 *
 * @typedef {{ label: string, needs?: boolean, give?: (draft: any) => Answered, change?: boolean, check?: boolean }} Button
 *
 * @typedef {object} Host what a step is drawn in
 * @property {(answered: Answered) => void} send keeps an answer, or votes with it
 * @property {() => void} [checkAgain] measures once more what wasn't known yet
 */

/** @type {State} */
export const ALONE = { id: "", answered: null, phase: null, canChange: false, isTeacher: false };

/** What a visitor has put in and not answered yet, by step: it is there again when they come back. @type {Map<string, any>} */
const drafts = new Map();

/**
 * Whether the question of a step can be answered, and whether its answer may be shown.
 *
 * @param {Step} step
 * @param {State} state
 * @param {boolean} [isChanging]
 */
export function stateOf({ question }, { answered, phase }, isChanging = false) {
  const isOpen = question !== null && (!answered || answered.discussing || isChanging) && phase !== "revealed";
  return { isOpen, isRevealed: !isOpen && (!question || phase === null || phase === "revealed") };
}

/**
 * The buttons below a question, and what each does with what has been put in; `needs` says that it does nothing before.
 *
 * @param {Step} step
 * @param {State} state
 * @param {boolean} [isChanging]
 * @returns {Button[]}
 */
export function buttonsOf(step, { answered, phase, canChange, isTeacher }, isChanging = false) {
  const { isOpen, isRevealed } = stateOf(step, { ...ALONE, answered, phase }, isChanging);
  if (!step.question || isTeacher || step.question.problem) return [];
  if (!isOpen) {
    if (isRevealed) return step.question.isComing ? [{ label: "Check again", check: true }] : [];
    return canChange ? [{ label: "Change my answer", change: true }] : [];
  }
  const how = { isChange: isChanging, isSecond: phase === "second" };
  const answer = { label: answered ? "Answer again" : "Answer", needs: true, give: (draft) => withAnswer(answered, draft, how) };
  if (isChanging) return [answer, { label: "Keep my answer", change: false }];
  if (answered) return [answer, { label: "Keep my answer", give: () => withAnswer(answered, answered.first) }];
  // In a room, the teacher starts the discussion.
  return phase === null ? [answer, { label: "Discuss first", needs: true, give: (draft) => withAnswer(null, draft, { discusses: true }) }] : [answer];
}

/** What is said of an answer, as HTML. @param {Step} step @param {State} state @param {boolean} [isChanging] */
export function said(step, state, isChanging = false) {
  const { isOpen, isRevealed } = stateOf(step, state, isChanging);
  const { question } = step;
  if (!question || (isOpen && (!state.answered || isChanging))) return { right: false, sentence: "" };
  if (isOpen) return { right: false, sentence: "Your first answer is kept. Compare reasons with somebody, then answer again." };
  return verdict(isRevealed ? question : { ...question, right: null, later: "The right one is shown when your teacher reveals it." }, state.answered);
}

const PARTS = ["words", "question", "found"];

export class StepView {
  /** @param {HTMLElement} root @param {Host} host */
  constructor(root, host) {
    this.root = root;
    this.host = host;
    this.parts = { root };
    this.drawn = "";
    this.isChanging = false;
    /** @type {Step} */ this.step = null;
    this.state = ALONE;
    this.shows = PARTS;
  }

  /** @param {Step} step @param {State} state @param {string[]} [shows] of `PARTS` */
  update(step, state, shows = this.shows) {
    const whole = JSON.stringify([step, state, shows]);
    if (whole === this.drawn) return;
    const isSame = state.id === this.state.id;
    Object.assign(this, { drawn: whole, step, state, shows });
    this.isChanging &&= isSame && state.canChange;
    this.draw();
  }

  /** Where the focus was on what goes, it is on what has become of it. */
  draw() {
    const hadFocus = this.root.contains(focusedIn(this.root));
    this.drawParts();
    /** @type {HTMLElement | null} */
    const next = hadFocus ? this.root.querySelector(".verdict, .question :is(input, button, [tabindex='0'])") : null;
    next?.focus();
  }

  drawParts() {
    const { root, step, state, shows } = this;
    root.classList.add("lesson-step");
    root.classList.toggle("no-formulas", !globalThis.MathMLElement); // Chrome before 109
    root.replaceChildren();
    if (shows.includes("words")) {
      html("h2", "", root, step.title);
      html("div", "words", root, step.words);
    }
    if (shows.includes("question") && step.question) this.drawQuestion(step.question);
    if (!shows.includes("found") || !stateOf(step, state, this.isChanging).isRevealed) return;
    if (step.reveal) attribute(html("section", "reveal", root, step.reveal), "aria-label", "Explanation");
    if (step.problems) html("p", "problem", root, `This lesson was written for other versions of its models. What it says, and what was measured: ${step.problems}.`);
    if (step.toTry) attribute(html("section", "try", root, `<p><strong>Try it</strong></p>${step.toTry}`), "aria-label", "Try it");
  }

  /** @param {Question} question */
  drawQuestion(question) {
    const { step, state, isChanging } = this;
    const section = node("section", "question", this.root);
    attribute(section, "aria-label", "Question");
    const form = node("form", "", section);
    if (question.problem) {
      put(node("p", "problem", form), question.problem);
      return;
    }
    html("p", "", form, `<strong>${question.text}</strong>`);
    const { isOpen, isRevealed } = stateOf(step, state, isChanging);
    let draft = drafts.get(this.draftId) ?? lastOf(state.answered);
    const drawn = [];
    const take = (answer) => {
      draft = answer;
      drafts.set(this.draftId, answer);
      for (const [button, { needs }] of drawn) button.disabled = Boolean(needs) && draft === null;
    };
    if (isOpen) draft = ask(form, question, draft, take) ?? draft;
    else show(form, question, state.answered, isRevealed);
    const { right, sentence } = said(step, state, isChanging);
    if (sentence) {
      const line = html("p", isOpen ? "sentence" : `verdict${right ? " right" : ""}`, form, sentence);
      attribute(line, "role", "status");
      line.tabIndex = -1;
    }
    const row = node("div", "buttons", form);
    for (const [at, button] of buttonsOf(step, state, isChanging).entries()) {
      const made = node("button", isOpen && at === 0 ? "act first" : "act", row);
      Object.assign(made, { type: button.needs ? "submit" : "button", textContent: button.label, disabled: Boolean(button.needs) && draft === null });
      drawn.push([made, button]);
      sends(made, () => this.press(button, draft));
    }
  }

  /** Another question has another draft, and so has the second answer to one. */
  get draftId() {
    return `${this.state.id} ${this.state.answered ? "again" : ""}`;
  }

  /** @param {Button} button @param {any} draft */
  press({ give, change, check }, draft) {
    if (check) this.host.checkAgain?.();
    else if (give) {
      this.isChanging = false;
      drafts.delete(this.draftId);
      this.host.send(give(draft));
    } else {
      this.isChanging = Boolean(change);
      this.draw();
    }
  }
}

/** @template {keyof HTMLElementTagNameMap} Tag @param {Tag} kind @param {string} className @param {ParentNode} parent @param {string} text */
export function html(kind, className, parent, text) {
  const made = node(kind, className, parent);
  putHtml(made, text);
  return made;
}

/** HTML as a text. @param {string} text */
export function bare(text) {
  return new DOMParser().parseFromString(text, "text/html").body.textContent;
}

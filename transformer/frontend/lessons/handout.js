// Prints a lesson: a part for each question, to be folded so that the next stays hidden, then the answers.

import { escaped, onPaper, solution } from "./questions.js";
/** @import { Question } from "./questions.js" */
/** @import { Step } from "./step.js" */

/**
 * @typedef {Step & { view: { page: string, opened: "before" | "after", onPaper: string } | null }} PrintedStep onPaper: what of the view is printed, as HTML
 * @typedef {{ title: string, minutes: number, aims: string[], steps: PrintedStep[] }} PrintedLesson
 */

const FOLD = " Answer before you go on: fold the sheet here.";
const LATER = "This depends on your own training: open the lesson in the app.";

/** A lesson on paper, as HTML. @param {PrintedLesson} lesson */
export function handout({ title, minutes, aims, steps }) {
  const header = [
    `<h1>${title}</h1><p class="faint">About ${minutes} minutes. Name: ______________________</p>`,
    aims.length ? `<p>After this lesson you can:</p><ul>${aims.map((aim) => `<li>${aim}</li>`).join("")}</ul>` : "",
  ];
  const parts = [header]; // each ends in a question, which the next may answer
  const answers = [];
  let drawn = "";
  steps.forEach((step, at) => {
    const picture = step.view?.onPaper ?? "";
    const fresh = picture === drawn ? "" : picture; // the same isn't drawn twice in a row
    drawn = picture || drawn;
    const ends = step.question !== null && at + 1 < steps.length;
    parts.at(-1).push(asked(step, at + 1, fresh, ends));
    if (ends) parts.push([]);
    if (step.question || step.toTry) answers.push(told(step, at + 1, fresh));
  });
  const sections = parts.map((part) => `<section class="part">${part.join("")}</section>`);
  return sections.join("") + (answers.length ? `<h1 class="new-page">Answers</h1>${answers.join("")}` : "");
}

/** A step up to its question. @param {PrintedStep} step @param {number} number @param {string} picture @param {boolean} ends whether another part follows */
function asked({ title, words, question, view }, number, picture, ends) {
  const where = view ? `In the app: the page ${escaped(view.page)}, as this step opens it.` : "";
  return [
    `<h2>${number}. ${title}</h2>${words}`,
    view?.opened === "before" ? picture : "",
    question ? questionOnPaper(question) : "",
    `<p class="faint${ends ? " fold" : ""}">${where}${ends ? FOLD : ""}</p>`,
  ].join("");
}

/** @param {Question} question */
function questionOnPaper(question) {
  if (question.problem) return `<div class="question"><p>${escaped(question.problem)}</p></div>`;
  return `<div class="question"><p>${question.text}</p>${onPaper(question)}<p class="faint">Why do you think so?</p><div class="lines"></div></div>`;
}

/** What is right, why, and what to try once it is known. @param {PrintedStep} step @param {number} number @param {string} picture */
function told({ title, question, reveal, toTry, view }, number, picture) {
  const parts = [`<h3>${number}. ${title}</h3>`];
  if (question && question.right === null) parts.push(`<p>${question.isComing ? LATER : escaped(question.later || question.problem)}</p>`);
  else if (question) parts.push(solution(question), reveal, view?.opened === "after" ? picture : "");
  if (toTry) parts.push(`<p><strong>Try it.</strong></p>${toTry}`);
  return parts.join("");
}

// Runs the lessons of a static site, or the one lesson of a file: each step asks before it shows, and shows live instruments.
// What is right was measured when the lesson was written. Answers stay in this browser, and can be taken along as CSV.

import { ApiError } from "../api_error.js";
import { node, partsOf } from "../dom.js";
import { csvFile, saveBlob } from "../save.js";
import { replaceAddress, viewState } from "../view_state.js";
import { Models, embeddedModel, fetched } from "./models.js";
import { asked, isRight, readAnswer, said } from "./questions.js";
import { isShownHere, showView } from "./view_host.js";
/** @import { Question } from "./questions.js" */

/**
 * @typedef {object} Step of a lesson; texts are HTML
 * @property {string} title
 * @property {string} words
 * @property {Question | null} question
 * @property {string} reveal
 * @property {string} toTry
 * @property {{ page: string, link: string, opened: "before" | "after" } | null} view
 *
 * @typedef {{ name: string, title: string, asks: string, minutes: number, aims: string[], steps: Step[] }} Lesson
 */

const KEPT = "headsup-answers";
const isFile = Boolean(document.getElementById("worker"));
const models = new Models(isFile ? embeddedModel : fetched);
const parts = partsOf(document);

/** @returns {Record<string, any>} answers by "lesson/step" */
function answers() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "{}");
  } catch {
    return held; // a browser may refuse to keep anything
  }
}

/** @type {Record<string, any>} */
let held = {};

function keep(id, answer) {
  held = { ...answers(), ...held, [id]: answer };
  try {
    localStorage.setItem(KEPT, JSON.stringify(held));
  } catch {
    // they last as long as the page is open
  }
}

function html(kind, className, parent, text) {
  const made = node(kind, className, parent);
  made.innerHTML = text; // made of a lesson's Markdown, in which nothing can become an element
  return made;
}

function button(parent, label, act, className = "act") {
  const made = node("button", className, parent);
  Object.assign(made, { type: "button", textContent: label });
  made.addEventListener("click", act);
  return made;
}

/** The list of lessons. @param {(Pick<Lesson, "name" | "title" | "asks" | "minutes">)[]} lessons */
function showList(lessons) {
  parts.lesson.replaceChildren();
  html("h1", "", parts.lesson, "Learn");
  node("p", "faint", parts.lesson).textContent = "Predict, look, and see why. Your answers stay in this browser.";
  const list = node("ul", "site-lessons", parts.lesson);
  for (const { name, title, asks, minutes } of lessons) {
    const item = node("li", "", list);
    const heading = node("h2", "", item);
    Object.assign(node("a", "", heading), { href: `Learn/?lesson=${name}`, textContent: title });
    html("p", "", item, asks);
    node("span", "faint", item).textContent = `${minutes} minutes`;
  }
}

/** One step. @param {Lesson} lesson @param {number} number */
function showStep(lesson, number) {
  const step = lesson.steps[number];
  const id = `${lesson.name}/${number}`;
  parts.lesson.replaceChildren();
  html("h1", "", parts.lesson, lesson.title);
  node("p", "faint", parts.lesson).textContent = `Step ${number + 1} of ${lesson.steps.length}`;
  const both = node("div", "site-step", parts.lesson);
  const text = node("div", "site-text", both);
  html("h2", "", text, step.title);
  html("div", "", text, step.words);
  const view = node("div", "", both);
  view.dataset.part = "view";
  view.hidden = true;
  const said = node("div", "", text);
  const draw = () => {
    const answer = { ...answers(), ...held }[id];
    said.replaceChildren();
    if (step.question) showQuestion(said, step.question, answer, (given) => {
      keep(id, given);
      draw();
    });
    const isOpen = step.question && answer === undefined;
    if (!isOpen && step.reveal) html("div", "", said, step.reveal);
    if (!isOpen && step.toTry) html("div", "", said, `<p><strong>Try it.</strong></p>${step.toTry}`);
    if (step.view && (step.view.opened === "before" || !isOpen)) openView(view, step.view);
  };
  draw();
  const moves = node("div", "site-moves", text);
  const go = (to) => {
    viewState().become("");
    replaceAddress(new URLSearchParams({ ...(isFile ? {} : { lesson: lesson.name }), place_in_lesson: String(to + 1) }).toString());
    showStep(lesson, to);
    scrollTo(0, 0);
  };
  if (number > 0) button(moves, "Previous", () => go(number - 1));
  if (number + 1 < lesson.steps.length) button(moves, "Next", () => go(number + 1), "act first");
  else node("span", "", moves).textContent = "This was the last step.";
  button(moves, "Save my answers", () => saveAnswers(lesson));
  if (!isFile) Object.assign(node("a", "act", moves), { href: "Learn/", textContent: "All lessons" });
}

/** @param {HTMLElement} parent @param {Question} question @param {any} answer @param {(answer: any) => void} take */
function showQuestion(parent, question, answer, take) {
  const form = node("form", "site-question", parent);
  html("p", "", form, `<strong>${question.text}</strong>`);
  asked(form, question, answer);
  if (answer === undefined) {
    const submit = node("button", "act first", form);
    Object.assign(submit, { type: "submit", textContent: "Answer" });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = readAnswer(form, question);
      if (given !== null) take(given);
    });
    return;
  }
  const right = isRight(question, answer);
  const verdict = html("p", `site-verdict${right ? " right" : ""}`, form, `${right ? "Correct." : `Your answer: ${said(question, answer)}.`} ${right && question.kind !== "number" ? "" : `Correct: ${question.correct}.`}`);
  verdict.setAttribute("role", "status");
}

async function openView(parent, { page, link }) {
  if (parent.dataset.link === link && !parent.hidden) return;
  parent.dataset.link = link;
  parent.hidden = false;
  if (!isShownHere(page)) {
    node("p", "faint", parent).textContent = `This step's view, ${page}, is in the app.`;
    return;
  }
  const parameters = new URLSearchParams(link);
  viewState().become(link);
  try {
    await showView(parent, page, parameters, models, (event, value) => {
      if (event === "navigate" && !isFile) location.href = `${new URL(`${value.page}/`, document.baseURI)}?${viewState().merged(link)}`;
      if (event === "change") change(parent, { page, link }, value);
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    Object.assign(node("p", "problem", parent), { textContent: error.message });
  }
}

/** Show a view with another change of the model. */
function change(parent, { page, link }, { add = [], remove = [] }) {
  const parameters = new URLSearchParams(link);
  const given = (codes) => [codes ?? []].flat();
  const left = (parameters.get("changes") ?? "").split("!").filter((code) => code && ![...given(add), ...given(remove)].includes(code));
  parameters.set("changes", [...left, ...given(add)].join("!"));
  openView(parent, { page, link: viewState().merged(parameters.toString()) });
}

/** @param {Lesson} lesson */
function saveAnswers(lesson) {
  const given = { ...answers(), ...held };
  const rows = lesson.steps.flatMap((step, number) => {
    const answer = given[`${lesson.name}/${number}`];
    return step.question && answer !== undefined ? [[lesson.title, number + 1, plain(step.title), plain(said(step.question, answer)), isRight(step.question, answer) ? "yes" : "no"]] : [];
  });
  saveBlob(`${lesson.name}-answers.csv`, csvFile(["lesson", "step", "title", "answer", "right"], rows));
}

function plain(text) {
  return new DOMParser().parseFromString(text, "text/html").body.textContent;
}

async function start() {
  const { lessons = [], lesson: own = null } = JSON.parse(parts.about.textContent);
  const parameters = new URLSearchParams(location.search);
  const name = parameters.get("lesson");
  let lesson = own;
  if (!lesson && lessons.some((one) => one.name === name)) {
    const response = await fetch(new URL(`lessons/${name}.json`, document.baseURI)).catch(() => null);
    if (response?.ok) lesson = await response.json();
  }
  if (lesson) showStep(lesson, Math.min(Math.max(Number(parameters.get("place_in_lesson") ?? 1) - 1 || 0, 0), lesson.steps.length - 1));
  else showList(lessons);
  parts.lesson.dataset.state = "shown";
}

start();

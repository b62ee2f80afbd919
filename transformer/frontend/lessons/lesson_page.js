// Runs the lessons of a static site, or the one lesson of a file: each step asks before it shows, and shows live instruments.
// What is right was measured when the document was made. Answers stay in this browser, and can be saved as CSV.

import { AttentionView } from "../attention/view.js";
import { store, stored } from "../browser_storage.js";
import { node, partsOf, putHtml } from "../dom.js";
import { FillingView } from "../filling/view.js";
import { GenerationView } from "../generation/view.js";
import { InsideView } from "../inside/view.js";
import { MasksView } from "../masks/view.js";
import { csvFile, saveBlob } from "../save.js";
import { PositionsView } from "../positions/view.js";
import { drawForPaper } from "../printing.js";
import { DEFAULT_MODEL, pageState, replaceAddress } from "../page/page_state.js";
import { Shell } from "../page/shell.js";
import { needsModel } from "../page/view_data.js";
import { WhatIfView } from "../what_if/view.js";
import { keepOffline } from "../site/offline.js";
import { Models, embeddedModel, fetched } from "../site/models.js";
import { handout } from "./handout.js";
import { drawCards } from "./lesson_list.js";
import { inWords, isRight, lastOf } from "./questions.js";
import { ALONE, StepView, bare, html, stateOf } from "./step.js";
/** @import { ListedModel } from "../page/shell.js" */
/** @import { Card } from "./lesson_list.js" */
/** @import { Answered } from "./questions.js" */
/** @import { Step } from "./step.js" */

/**
 * @typedef {{ page: string, link: string, opened: "before" | "after", picture: string | null, onPaper: string }} View picture: of one that isn't computed; onPaper: as `handout.js` has it
 *
 * @typedef {{ name: string, title: string, asks: string, minutes: number, aims: string[], steps: (Step & { view: View | null })[], note?: string }} Lesson texts are HTML
 */

const VIEWS = { Generate: GenerationView, Filling: FillingView, Attention: AttentionView, Inside: InsideView, Masks: MasksView, Positions: PositionsView, "What if": WhatIfView };
const KEPT = "headsup-lesson-answers";
/** @type {boolean} */ let isFile;
/** @type {Models} */ let models;
/** @type {Record<string, any>} */ let parts;
/** @type {{ models: ListedModel[], lessons?: any[], lesson?: Lesson }} models: that are here */ let about;
/** @type {Shell | null} of the step's view */ let shell = null;

/** What was answered, by "lesson/step". @returns {Record<string, Answered>} */
const answers = () => Object(stored(KEPT, "localStorage"));

function button(parent, label, act, className = "act") {
  const made = node("button", className, parent);
  Object.assign(made, { type: "button", textContent: label });
  made.addEventListener("click", act);
  return made;
}

/** The list of lessons. @param {(Pick<Card, "name" | "title" | "asks" | "minutes" | "aims" | "missing"> & { asked: number[] })[]} lessons asked: the steps with a question */
function showList(lessons) {
  parts.lesson.replaceChildren();
  html("h1", "", parts.lesson, "Learn");
  node("p", "faint", parts.lesson).textContent = "Predict, look, and see why. Your answers stay in this browser.";
  const given = answers();
  const cards = lessons.map(({ asked, ...lesson }) => {
    const answered = asked.filter((number) => lastOf(given[`${lesson.name}/${number}`] ?? null) !== null).length;
    return { ...lesson, questions: asked.length, answered, isBegun: answered > 0, isDone: answered > 0 && answered === asked.length };
  });
  drawCards(node("ul", "", parts.lesson), cards, { hrefOf: (lesson) => `Learn/?${new URLSearchParams({ lesson })}` });
}

/** One step. @param {Lesson} lesson @param {number} number */
function showStep(lesson, number) {
  const step = lesson.steps[number];
  const id = `${lesson.name}/${number}`;
  parts.lesson.replaceChildren();
  html("h1", "", parts.lesson, lesson.title);
  node("p", "faint", parts.lesson).textContent = `Step ${number + 1} of ${lesson.steps.length}`;
  if (lesson.note) node("p", "faint", parts.lesson).textContent = lesson.note;
  const both = node("div", "site-step", parts.lesson);
  const text = node("div", "site-text", both);
  const view = viewIn(both, lesson);
  const root = node("div", "", text);
  root.dataset.part = "root";
  const send = (answered) => {
    store(KEPT, { ...answers(), [id]: answered }, "localStorage");
    draw();
  };
  const drawn = new StepView(root, { send });
  const draw = () => {
    const state = { ...ALONE, id, answered: answers()[id] ?? null };
    const { isOpen, isRevealed } = stateOf(step, state);
    drawn.update(step, state);
    if (step.view && (step.view.opened === "before" || isRevealed)) view.open(step.view, !isOpen);
  };
  draw();
  const moves = node("div", "site-moves", text);
  const go = (to) => {
    parts.lesson.replaceChildren(); // the view of the step before follows nothing more
    shell = null;
    pageState().become(linkOf("", lesson));
    replaceAddress(new URLSearchParams({ ...(isFile ? {} : { lesson: lesson.name }), place_in_lesson: String(to + 1) }).toString());
    showStep(lesson, to);
    scrollTo(0, 0);
  };
  if (number > 0) button(moves, "Previous", () => go(number - 1));
  if (number + 1 < lesson.steps.length) button(moves, "Next", () => go(number + 1), "act first");
  else node("span", "", moves).textContent = "This was the last step.";
  button(moves, "Save my answers", () => saveAnswers(lesson));
  Object.assign(node("a", "act", moves), { href: `${isFile ? "" : "Learn/"}?${new URLSearchParams({ lesson: lesson.name, handout: "1" })}`, textContent: "Handout to print" });
  if (!isFile) Object.assign(node("a", "act", moves), { href: "Learn/", textContent: "All lessons" });
}

/** Makes room for a step's view, which is shown by `open`. @param {HTMLElement} parent @param {Lesson} lesson */
function viewIn(parent, lesson) {
  const side = node("div", "site-view", parent);
  side.hidden = true;
  return {
    /** @param {View} view @param {boolean} isFree whether model, prompt and changes can be changed */
    open(view, isFree) {
      if (!side.hidden) {
        shell?.update({ ...shell.host, isFixed: !isFree });
        return;
      }
      side.hidden = false;
      if (view.picture === null) showLive(side, view, lesson, isFree);
      else {
        html("div", "", side, view.picture);
        node("p", "faint", side).textContent = `${view.picture ? `A still picture of the page ${view.page}. It` : `The page ${view.page}`} is live in the app: open this step there.`;
      }
    },
  };
}

/** @param {HTMLElement} side @param {View} view @param {Lesson} lesson @param {boolean} isFree */
function showLive(side, view, lesson, isFree) {
  pageState().become(linkOf(view.link, lesson));
  shell = new Shell(side, {
    page: { title: view.page, sentence: "" }, views: VIEWS, answers: models, isLinked: false, usesModel: needsModel(view.page), isBare: !needsModel(view.page), isFixed: !isFree,
    catalogue: needsModel(view.page) ? about.models : [{ name: pageState().get("model") ?? DEFAULT_MODEL, title: "", group: "", examples: [] }],
    navigate: isFile ? null : (page, state) => {
      const { lesson: _, ...shown } = state.all();
      location.href = `${new URL(`${page.replaceAll(" ", "_")}/`, document.baseURI)}?${new URLSearchParams(shown)}`;
    },
  });
}

/** The address of a view in a lesson. @param {string} link @param {Lesson} lesson */
function linkOf(link, { name }) {
  return new URLSearchParams([...new URLSearchParams(link), ...(isFile ? [] : [["lesson", name]])]);
}

/** @param {Lesson} lesson */
function saveAnswers(lesson) {
  const given = answers();
  const rows = lesson.steps.flatMap(({ title, question }, number) => {
    const answer = lastOf(given[`${lesson.name}/${number}`] ?? null);
    if (!question || answer === null) return [];
    const right = question.right === null ? "" : isRight(question, answer) ? "yes" : "no";
    return [[bare(lesson.title), number + 1, bare(title), bare(inWords(question, answer)), right]];
  });
  saveBlob(`${lesson.name}-answers.csv`, csvFile(["lesson", "step", "title", "answer", "right"], rows));
}

export async function startLessons() {
  isFile = Boolean(document.getElementById("worker"));
  models = new Models(isFile ? embeddedModel : fetched);
  parts = partsOf(document);
  drawForPaper(() => shell?.redraw());
  about = JSON.parse(document.getElementById("about").textContent);
  const { lessons = [], lesson: own = null } = about;
  const parameters = new URLSearchParams(location.search);
  const name = parameters.get("lesson");
  let lesson = own;
  if (!lesson && lessons.some((one) => one.name === name && !one.missing)) {
    const response = await fetch(new URL(`lessons/${name}.json`, document.baseURI)).catch(() => null);
    if (response?.ok) lesson = await response.json();
  }
  if (lesson && parameters.has("handout")) {
    parts.lesson.classList.add("handout");
    putHtml(parts.lesson, handout(lesson));
  } else if (lesson) showStep(lesson, Math.min(Math.max(Number(parameters.get("place_in_lesson") ?? 1) - 1 || 0, 0), lesson.steps.length - 1));
  else showList(lessons);
  parts.lesson.dataset.state = "shown";
  if (!isFile) keepOffline();
}

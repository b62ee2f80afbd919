// The five kinds of question of a lesson: how each is asked, marked, put into words, and shown with what is right.

import { attribute, node, put, putHtml, untranslated } from "../dom.js";
import { percent } from "../number_format.js";
import { CellInput, cellInWords } from "./cell_input.js";
import { OrderInput } from "./order_input.js";
/** @import { Picture } from "./cell_input.js" */

/**
 * @typedef {object} Question as pages/ui/views/learn/document.py makes it; texts are HTML
 * @property {"choose" | "number" | "token" | "cell" | "order"} kind
 * @property {string} text
 * @property {string[]} options of choose and order; of token the labels of the prompt, which are no HTML
 * @property {Picture | null} picture of cell
 * @property {any} right an option, a number, a list of positions, a query and a key, or a rank for each option; null where it isn't known
 * @property {string} later why what is right isn't known; no HTML
 * @property {boolean} isComing whether it can be known once the visitor has trained a model
 * @property {string} problem why it can't be asked; no HTML
 * @property {number} low
 * @property {number} high
 * @property {number} step
 * @property {number} near how far off still counts
 * @property {string} unit
 *
 * @typedef {object} Answered what a visitor has answered
 * @property {any} first
 * @property {any} second after a discussion; null for the same, and for none
 * @property {boolean} discussing whether a second answer is still to come
 *
 * @typedef {object} Kind
 * @property {(parent: HTMLElement, question: Question, draft: any, take?: (answer: any) => void) => any} ask draws the input, with what was put in so far; without `take` it
 *   is for reading only. Returns an answer that stands without being put in
 * @property {(question: Question, answer: any) => boolean} isRight
 * @property {(question: Question) => any} [solved] an answer that is right, if that isn't what `right` says
 * @property {(question: Question, answer: any) => string} inWords as HTML
 * @property {(question: Question) => string} onPaper what is written on, as HTML
 * @property {(parent: HTMLElement, question: Question, answered: Answered | null, isKnown: boolean) => void} show what could be answered, was, and is right
 */

const NOTE = { token: "Choose a token. The small number is its position." };
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** @type {Record<Question["kind"], Kind>} */
const KINDS = {
  choose: {
    ask: (parent, { options }, draft, take) => choices(parent, options.map((option) => (label) => putHtml(node("span", "", label), option)), draft, take),
    isRight: ({ right }, answer) => answer === right,
    inWords: ({ options }, answer) => `“${options[answer]}”`,
    onPaper: ({ options }) => items("ul", options, "options"),
    show(parent, { options, right }, answered, isKnown) {
      const list = node("ul", "options", parent);
      options.forEach((option, at) => {
        const item = node("li", "", list);
        putHtml(node("span", "", item), option);
        if (answered?.second == null) badge(item, "Your answer", at === answered?.first);
        else {
          badge(item, "Your first answer", at === answered.first);
          badge(item, "Your second answer", at === answered.second);
        }
        badge(item, "Correct", isKnown && at === right);
      });
    },
  },
  number: {
    ask: slider,
    isRight: ({ right, near }, answer) => Math.abs(answer - right) <= near * (1 + 1e-9),
    inWords: ({ unit }, answer) => escaped(numberInWords(answer, unit)),
    onPaper: ({ unit }) => `<p>Your answer: __________ ${escaped(unit)}</p>`,
    show() {},
  },
  token: {
    ask(parent, { options }, draft, take) {
      put(node("p", "sentence", parent), NOTE.token);
      return choices(parent, options.map((text, at) => (label) => token(label, text, at)), draft, take, "tokens");
    },
    isRight: ({ right }, answer) => right.includes(answer),
    solved: ({ right }) => right[0],
    inWords: ({ options }, answer) => (answer < options.length ? `<code>${escaped(options[answer])}</code> at position ${Number(answer)}` : `position ${Number(answer)}`),
    onPaper: ({ options }) => `<p>Circle it: ${options.map((text) => `<code>${escaped(text)}</code>`).join(" ")}</p>`,
    show(parent, { options, right }, answered, isKnown) {
      const list = node("p", "tokens", parent);
      options.forEach((text, at) => {
        const made = token(list, text, at);
        made.classList.toggle("chosen", at === lastOf(answered));
        made.classList.toggle("right", isKnown && right.includes(at));
      });
      const legend = node("p", "", parent);
      badge(legend, "Your answer", answered !== null);
      badge(legend, "Correct", isKnown);
    },
  },
  cell: {
    ask(parent, { picture }, draft, take) {
      if (picture) new CellInput(parent, picture, { chosen: draft, take });
    },
    isRight: ({ right }, answer) => same(answer, right),
    inWords: ({ picture }, [query, key]) => (picture ? cellInWords(picture, [query, key], (label) => `<code>${escaped(label)}</code>`) : `query ${Number(query)}, key ${Number(key)}`),
    onPaper: ({ picture }) => (picture ? `<p>Mark the cell: rows are queries, columns are keys.</p>${emptyCells(picture)}` : "<p>Query: __________ Key: __________</p>"),
    show(parent, { picture, right }, answered, isKnown) {
      if (picture && isKnown) new CellInput(parent, picture, { chosen: lastOf(answered), right });
    },
  },
  order: {
    ask(parent, { options }, draft, take) {
      const order = draft ?? options.map((_, at) => at);
      new OrderInput(parent, options, order, { label: "Your order", take });
      return order;
    },
    isRight: ({ right }, answer) => answer.every((option, at) => at === 0 || right[answer[at - 1]] <= right[option]),
    solved: ({ right }) => inOrder(right),
    inWords: ({ options }, answer) => answer.map((option) => options[option]).join(" → "),
    onPaper: ({ options }) => items("ul", options, "options to-order"),
    show(parent, { options, right }, answered, isKnown) {
      if (!isKnown) return;
      const label = "In the correct order";
      put(node("p", "sentence", parent), label);
      new OrderInput(parent, options, inOrder(right, lastOf(answered) ?? undefined), { label });
    },
  },
};

/** Draws the input for an answer. @type {Kind["ask"]} */
export const ask = (parent, question, draft, take) => KINDS[question.kind].ask(parent, question, draft, take);

/** Whether an answer is right. @type {Kind["isRight"]} */
export const isRight = (question, answer) => KINDS[question.kind].isRight(question, answer);

/** @type {Kind["inWords"]} */
export const inWords = (question, answer) => KINDS[question.kind].inWords(question, answer);

/** A question as it is printed. @type {Kind["onPaper"]} */
export const onPaper = (question) => KINDS[question.kind].onPaper(question);

/** An answer that is right, as it is printed. @param {Question} question */
export function solution(question) {
  const { kind, right, options } = question;
  if (kind === "order") return items("ol", inOrder(right).map((option) => options[option]));
  return `<p><strong>Correct: ${correctOf(question)}</strong></p>`;
}

/** An answer that is right, in words. @param {Question} question */
function correctOf(question) {
  const { solved } = KINDS[question.kind];
  return inWords(question, solved ? solved(question) : question.right);
}

/** Draws an answered question. @type {Kind["show"]} */
export const show = (parent, question, answered, isKnown) => KINDS[question.kind].show(parent, question, answered, isKnown && question.right !== null);

/** The answer that counts. @param {Answered | null} answered */
export function lastOf(answered) {
  return answered && (answered.second ?? answered.first);
}

/**
 * What was answered, with another answer: a changed one in a room, or the second of two.
 *
 * @param {Answered | null} answered
 * @param {any} answer
 * @param {{ discusses?: boolean, isChange?: boolean, isSecond?: boolean }} how
 * @returns {Answered}
 */
export function withAnswer(answered, answer, { discusses = false, isChange = false, isSecond = false } = {}) {
  if (!answered) return { first: answer, second: null, discussing: discusses };
  if (isChange && !isSecond) return { ...answered, first: answer };
  return { first: answered.first, second: same(answer, answered.first) ? null : answer, discussing: false };
}

/**
 * What becomes of an answer, as a sentence in HTML.
 *
 * @param {Question} question
 * @param {Answered | null} answered null for a visitor who hasn't answered when it is revealed
 */
export function verdict(question, answered) {
  const { kind, right, later } = question;
  const given = answered && [answered.first, answered.second].filter((answer) => answer !== null).map((answer) => inWords(question, answer)).join(", then ");
  const before = given ? `Your answer: ${given}. ` : "";
  if (right === null) return { right: false, sentence: before + escaped(later) };
  const isOrder = kind === "order";
  if (!answered) return { right: false, sentence: isOrder ? "" : `Correct: ${correctOf(question)}.` };
  if (!isRight(question, lastOf(answered))) return { right: false, sentence: before + (isOrder ? "The correct order is above." : `Correct: ${correctOf(question)}.`) };
  return { right: true, sentence: kind === "number" ? `${before}Correct: ${correctOf(question)}, close enough.` : `Correct: ${given}.` };
}

/** A number as people read it. @param {number} value @param {string} unit */
export function numberInWords(value, unit) {
  if (unit === "%") return percent(value);
  const shown = Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  return `${shown.replace("-", "−")} ${unit}`.trim();
}

/** Options by their ranks; of equal ones in the order in which they were put. */
function inOrder(ranks, before = ranks.map((_, at) => at)) {
  return [...before].sort((one, other) => (ranks[one] < ranks[other] ? -1 : Number(ranks[one] > ranks[other])));
}

function items(kind, texts, className = "") {
  return `<${kind}${className && ` class="${className}"`}>${texts.map((text) => `<li>${text}</li>`).join("")}</${kind}>`;
}

/** @param {Picture} picture */
function emptyCells({ queries, keys, causal }) {
  const head = keys.map((key) => `<th><span>${escaped(key)}</span></th>`).join("");
  const rows = queries.map((query, at) => `<tr><th>${escaped(query)}</th>${keys.map((_, key) => (causal && key > at ? "<td></td>" : '<td class="cell"></td>')).join("")}</tr>`);
  return `<table class="cells"><tr><th></th>${head}</tr>${rows.join("")}</table>`;
}

/** One of several. @param {((label: HTMLElement) => void)[]} options each draws one */
function choices(parent, options, draft, take, className = "") {
  const set = node("fieldset", className, parent);
  attribute(set, "aria-label", "Your answer");
  set.disabled = !take;
  const name = `answer-${(made += 1)}`;
  options.forEach((draw, at) => {
    const label = node("label", "", set);
    const input = node("input", "", label);
    Object.assign(input, { type: "radio", name, checked: draft === at });
    input.addEventListener("change", () => take(at));
    draw(label);
  });
}

let made = 0; // groups of radio buttons

function token(parent, text, position) {
  const shown = untranslated(node("span", "token", parent));
  put(node("code", "", shown), text);
  put(node("sub", "", shown), String(position));
  return shown;
}

function badge(parent, text, is) {
  if (is) put(node("span", text === "Correct" ? "badge right" : "badge", parent), text);
}

/** A slider that nobody has moved is no answer: its middle would count as one. @type {Kind["ask"]} */
function slider(parent, { low, high, step, unit }, draft, take) {
  const scale = unit === "%" ? 100 : 1;
  const [from, to, by] = [low, high, step].map((value) => Number((value * scale).toFixed(9)));
  const line = node("div", "slider", parent);
  const input = node("input", "", line);
  Object.assign(input, { type: "range", min: String(from), max: String(to), step: String(by), disabled: !take });
  input.value = String(draft === null ? from + Math.round((to - from) / 2 / by) * by : draft * scale);
  attribute(input, "aria-label", "Your answer");
  const output = node("output", "", line);
  const digits = Math.min(by.toFixed(6).replace(/\.?0+$/, "").split(".")[1]?.length ?? 0, 6);
  const say = () => {
    put(output, unit === "%" ? `${Number(input.value).toFixed(digits)}%` : `${Number(input.value).toFixed(digits)} ${unit}`.trim());
    attribute(input, "aria-valuetext", output.textContent);
  };
  say();
  const ends = node("p", "ends", parent);
  for (const end of [from, to]) put(node("span", "", ends), unit === "%" ? `${end}%` : `${end} ${unit}`.trim());
  const hint = node("p", "sentence", parent);
  put(hint, take && draft === null ? "Move the slider to answer." : "");
  input.addEventListener("input", () => {
    say();
    put(hint, "");
    take(Math.min(Math.max(Number(input.value) / scale, low), high));
  });
}

export function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

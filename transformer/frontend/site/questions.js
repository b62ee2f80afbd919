// Asks and marks the questions of a lesson, as pages/ui/lessons/questions.py does: what is right was measured before.

import { attribute, node, putHtml, untranslated } from "../dom.js";
import { letDrag } from "../row_dragging.js";

/**
 * @typedef {object} Question texts are HTML
 * @property {"choose" | "number" | "token" | "cell" | "order"} kind
 * @property {string} text
 * @property {string[]} options of choose and order; of token those of the prompt
 * @property {any} right a number, a list of positions, a query and a key, or the ranks of options in order
 * @property {string} correct the same in words
 * @property {number} low
 * @property {number} high
 * @property {number} step
 * @property {number} near
 * @property {string} unit
 */

/** Draws what can be answered, and what was. @param {HTMLElement} form @param {Question} question @param {any} answer undefined before */
export function asked(form, question, answer) {
  const { kind, options, low, high, unit } = question;
  const isDone = answer !== undefined;
  if (kind === "choose" || kind === "token") {
    const set = node("fieldset", kind === "token" ? "tokens" : "", form);
    set.disabled = isDone;
    options.forEach((option, at) => {
      const label = node("label", "", set);
      const input = node("input", "", label);
      Object.assign(input, { type: "radio", name: "answer", value: String(at), required: true, checked: answer === at });
      putHtml(node("span", "", label), option);
    });
  } else if (kind === "number" && !isDone) {
    const shown = unit === "%" ? 100 : 1;
    const label = node("label", "", form);
    label.append("Your answer: ");
    const input = node("input", "", label);
    Object.assign(input, { type: "number", name: "answer", required: true, min: String(low * shown), max: String(high * shown), step: "any" });
    input.placeholder = `${low * shown} to ${high * shown}`;
    label.append(` ${unit}`);
  } else if (kind === "cell" && !isDone) {
    for (const name of ["query", "key"]) {
      const label = node("label", "", form);
      label.append(`${name}: `);
      const select = node("select", "", label);
      Object.assign(select, { name, required: true });
      options[name].forEach(([text, position]) => select.append(untranslated(new Option(text, position))));
    }
  } else if (kind === "order" && !isDone) {
    const list = node("ol", "", form);
    options.forEach((option, at) => {
      const item = node("li", "", list);
      item.dataset.option = String(at);
      putHtml(node("span", "words", item), option);
      letDrag(item, { done: () => {} });
      for (const [sign, words] of [["↑", "up"], ["↓", "down"]]) {
        const button = node("button", "", item);
        Object.assign(button, { type: "button", textContent: sign });
        attribute(button, "aria-label", `Move ${words}`);
        button.addEventListener("click", () => {
          if (words === "up") item.previousElementSibling?.before(item);
          else item.nextElementSibling?.after(item);
          button.focus();
        });
      }
    });
  }
}

/** What was answered, null for nothing. @param {HTMLFormElement} form @param {Question} question */
export function readAnswer(form, { kind, unit }) {
  const data = new FormData(form);
  if (kind === "order") return [...form.querySelectorAll("li")].map((item) => Number(item.dataset.option));
  if (kind === "cell") return [Number(data.get("query")), Number(data.get("key"))];
  const given = data.get("answer");
  if (given === null || given === "") return null;
  return kind === "number" && unit === "%" ? Number(given) / 100 : Number(given);
}

/** Whether an answer is right. @param {Question} question @param {any} answer @returns {boolean} */
export function isRight({ kind, right, near }, answer) {
  if (kind === "number") return Math.abs(answer - right) <= near * (1 + 1e-9);
  if (kind === "token") return right.includes(answer);
  if (kind === "order") return answer.every((option, at) => at === 0 || right[answer[at - 1]] <= right[option]);
  return JSON.stringify(answer) === JSON.stringify(right);
}

/** An answer in words, as HTML. @param {Question} question @param {any} answer @returns {string} */
export function said({ kind, options, unit }, answer) {
  if (kind === "choose" || kind === "token") return options[answer];
  if (kind === "number") return unit === "%" ? `${Math.round(answer * 1000) / 10} %` : `${Number(answer)} ${escaped(unit)}`.trim();
  if (kind === "order") return answer.map((option) => options[option]).join(" → ");
  return ["query", "key"].map((name, at) => `${name} ${Number(answer[at])}`).join(", ");
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

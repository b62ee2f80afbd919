// Draws an intervention's fields as controls, each with its label. A number that is being typed isn't overwritten.

import { attribute, focusedIn, node, put } from "../dom.js";
import { FIELDS, KINDS, fieldsOf } from "../intervention_codes.js";
import { alike, pointInWords, ruleInWords, rulesOf, whereInWords, wheres } from "./change_options.js";
/** @import { Described } from "../intervention_checks.js" */

/** @typedef {Record<string, any>} Values of an intervention's fields */

const LAST_POSITION = 1e5;

/**
 * The fields of one kind, below each other. become: told the values of those that were changed.
 *
 * @param {HTMLElement} parent
 * @param {Described} model
 * @param {{ kind: string, points?: string[] | null, ofHead: boolean, set?: Values, become: (values: Values) => void }} of points: offered; left
 *   out, those that are like the one that is there. set: fields that aren't shown
 * @returns {(values: Values) => void} shows values
 */
export function drawFields(parent, model, { kind, points = null, ofHead, set = {}, become }) {
  const shows = [];
  const isOptional = (name) => KINDS[kind].fields.includes(`${name}?`);
  for (const name of fieldsOf(kind)) {
    const { type, title, dial } = FIELDS[name];
    const tell = (value) => become({ [name]: value });
    if (name in set) continue;
    if (name === "point") shows.push(select(parent, "Where", tell, ({ point }) => (points ?? alike(model, point)).map((each) => [each, pointInWords(each, ofHead)]), ({ point }) => point));
    else if (name === "rule") shows.push(select(parent, "Which", (rule) => become({ rule, where: "" }), () => rulesOf(model).map((rule) => [rule, ruleInWords(rule)]), ({ rule }) => rule));
    else if (name === "where") shows.push(select(parent, "Where", tell, ({ rule }) => wheres(model, rule).map((where) => [where, whereInWords(where)]), ({ where }) => where));
    else if (name === "head" && ofHead) shows.push(select(parent, title, (head) => tell(Number(head)), () => Array.from({ length: model.config.n_heads }, (_, head) => [String(head), String(head)]), ({ head }) => String(head)));
    else if (name === "position" && isOptional(name)) shows.push(onePosition(parent, title, tell));
    else if (type === "whole" && name !== "head") shows.push(number(parent, title, tell, { from: 0, to: LAST_POSITION, step: 1 }, (values) => values[name]));
    else if (type === "number") shows.push(number(parent, title, tell, dial, (values) => values[name]));
    else if (type === "flag") shows.push(checkbox(parent, title, tell, (values) => values[name]));
  }
  return (values) => shows.forEach((show) => show(values));
}

/**
 * @param {HTMLElement} parent
 * @param {string} title
 * @param {(value: string) => void} tell
 * @param {(values: Values) => string[][]} optionsOf values and what they are called
 * @param {(values: Values) => string} valueOf
 */
export function select(parent, title, tell, optionsOf, valueOf) {
  const label = labelled(parent, title);
  const made = node("select", "", label);
  attribute(made, "aria-label", title); // else its options would be part of its name
  made.addEventListener("change", () => tell(made.value));
  return (values) => {
    const options = optionsOf(values);
    const key = JSON.stringify(options);
    if (made.dataset.options !== key) made.replaceChildren(...options.map(([value, words]) => new Option(words, value)));
    made.dataset.options = key;
    made.value = valueOf(values);
    label.hidden = options.length < 2;
  };
}

/** Whether something is at one position only, and which. */
function onePosition(parent, title, tell) {
  const only = checkbox(parent, "At one position only", (isOne) => tell(isOne ? 0 : null), ({ position }) => position !== null);
  const where = number(parent, title, tell, { from: 0, to: LAST_POSITION, step: 1 }, ({ position }) => position ?? 0);
  const { lastElementChild: label } = parent;
  return (values) => {
    only(values);
    where(values);
    /** @type {HTMLElement} */ (label).hidden = values.position === null;
  };
}

/**
 * @param {HTMLElement} parent
 * @param {string} title
 * @param {(value: number) => void} tell
 * @param {{ from?: number, to?: number, step?: number }} range
 * @param {(values: Values) => number} valueOf
 */
function number(parent, title, tell, { from, to, step }, valueOf) {
  const made = Object.assign(node("input", "", labelled(parent, title)), { type: "number", min: String(from), max: String(to), step: String(step) });
  made.addEventListener("change", () => made.checkValidity() && made.value !== "" && tell(Number(made.value)));
  return (values) => {
    if (focusedIn(made) !== made || made.value === "") made.value = String(valueOf(values));
  };
}

function checkbox(parent, title, tell, valueOf) {
  const label = node("label", "change-check", parent);
  const made = Object.assign(node("input", "", label), { type: "checkbox" });
  put(node("span", "", label), title);
  made.addEventListener("change", () => tell(made.checked));
  return (values) => (made.checked = valueOf(values));
}

function labelled(parent, title) {
  const label = node("label", "", parent);
  put(node("span", "", label), title);
  return label;
}

// The changes that a visitor makes to a model, as a link has them: codes of interventions with ! between them, of which one that is
// off begins with -. All is pure: texts in, texts out.

import { problemOf } from "./intervention_checks.js";
import { FIELDS, MOST_CHANGES, MOST_CHARACTERS, codeOf, inWords, parsed, withoutDials } from "./intervention_codes.js";
/** @import { Described } from "./intervention_checks.js" */

/**
 * @typedef {{ code: string, on: boolean }} Change
 *
 * @typedef {object} Changes of one model
 * @property {string} now as a link has them
 * @property {string[]} before what they were, the latest last
 *
 * @typedef {object} Wish what is to be done; one of
 * @property {string[]} [add] codes
 * @property {string[]} [remove] codes
 * @property {number} [toggle] the number of a change to turn on or off
 * @property {[number: number, code: string]} [replace]
 * @property {boolean} [clear] whether all are taken back
 * @property {boolean} [undo] whether the last step is
 */

const BETWEEN = "!";
const OFF = "-";
const MOST_STEPS = 100; // that can be undone

/** @param {string | null} text @returns {Change[]} */
export function changesIn(text) {
  return (text ?? "").split(BETWEEN).filter(Boolean).map((code) => (code.startsWith(OFF) ? { code: code.slice(OFF.length), on: false } : { code, on: true }));
}

/** @param {Change[]} changes */
export function asText(changes) {
  return changes.map(({ code, on }) => `${on ? "" : OFF}${code}`).join(BETWEEN);
}

/** The codes of those that are on. @param {string | null} text */
export function changesOn(text) {
  return changesIn(text).filter(({ on }) => on).map(({ code }) => code);
}

/** The steps that an undo can go back to: a change that the tour, a lesson or Back has taken back is undone already. @param {Changes} changes */
export function stepsBefore({ now, before }) {
  let count = before.length;
  while (count && before[count - 1] === now) count -= 1;
  return before.slice(0, count);
}

/** What is said of changes that are on; empty without any. @param {string[]} codes */
export function changedSentence(codes) {
  return codes.length ? `Changed: ${codes.map(inWords).join("; ")}.` : "";
}

/** Those that have no effect on a text of so many tokens, after a source of so many: it has no such position. @param {string[]} codes */
export function withoutEffect(codes, { tokens, source = 0 }) {
  return codes.filter((code) => {
    const { point = "", query = null, position = query } = parsed(code).values;
    const isOfSource = point.startsWith("encoder.");
    // What a translator would write isn't written yet, and its pages show it all the same.
    return position !== null && (isOfSource || !source) && position >= (isOfSource ? source : tokens);
  });
}

/**
 * What of a link's changes a model can be changed by; the link is untrusted. problems: sentences on what is left out.
 *
 * @param {string | null} text
 * @param {Described} model
 */
export function readChanges(text, model) {
  if ((text ?? "").length > MOST_CHARACTERS) return { now: "", problems: [`The link's changes were left out: they have more than ${MOST_CHARACTERS.toLocaleString("en")} characters.`] };
  /** @type {Change[]} */
  let changes = [];
  const problems = [];
  for (const { code, on } of changesIn(text)) {
    try {
      changes = withChange(changes, code, on, model);
    } catch (error) {
      problems.push(`This change of the model is left out: ${inWords(code).slice(0, 100)}. Reason: ${/** @type {Error} */ (error).message.slice(0, 160)}.`);
    }
  }
  const more = problems.length - 1;
  return { now: asText(changes), problems: more > 0 ? [problems[0], `${more} more ${more === 1 ? "is" : "are"} left out, too.`] : problems };
}

/**
 * The changes after a wish, without those that can't be read or made; the same object if nothing is different. An Error says in a
 * sentence why the wish can't be.
 *
 * @param {Changes} changes
 * @param {Wish} wish
 * @param {Described} model
 * @returns {Changes}
 */
export function changed(changes, wish, model) {
  const { now, before } = changes;
  if (wish.undo) return before.length ? { now: before.at(-1), before: before.slice(0, -1) } : changes;
  const then = asText(wish.clear ? [] : wished(changesIn(readChanges(now, model).now), wish, model));
  if (then.length > MOST_CHARACTERS) throw new Error(`The change wasn't made: all changes together would have more than ${MOST_CHARACTERS.toLocaleString("en")} characters.`);
  return then === now ? changes : { now: then, before: [...before, now].slice(-MOST_STEPS) };
}

/** @param {Change[]} changes @param {Wish} wish @param {Described} model @returns {Change[]} */
function wished(changes, { add = [], remove = [], toggle = null, replace = null }, model) {
  if (toggle !== null) return changes.map(({ code, on }, at) => ({ code, on: on !== (at === toggle) }));
  if (replace) return replaced(changes, replace, model);
  let made = changes.filter(({ code }) => !remove.includes(code));
  for (const code of add) {
    try {
      made = withChange(made, code, true, model);
    } catch (error) {
      throw new Error(`This change wasn't added: ${/** @type {Error} */ (error).message}.`);
    }
  }
  return made;
}

/** With one more, in the place of one that differs from it by its dials alone. An Error says why it can't be. */
function withChange(changes, written, on, model) {
  const problem = problemWith(written, model);
  if (problem) throw new Error(problem);
  const { kind, values } = parsed(written);
  const code = codeOf(kind, values);
  const same = withoutDials(code);
  const at = changes.findIndex((change) => withoutDials(change.code) === same);
  if (at >= 0) return changes.map((change, place) => (place === at ? { code, on } : change));
  if (changes.length >= MOST_CHANGES) throw new Error(`at most ${MOST_CHANGES} changes can be made at once`);
  return [...changes, { code, on }];
}

function replaced(changes, [at, code], model) {
  if (!changes[at]) return changes;
  const same = withoutDials(code);
  const isTaken = changes.some((change, place) => place !== at && withoutDials(change.code) === same);
  const problem = problemWith(code, model) || (isTaken ? "another change in the list affects the same part" : "");
  if (problem) throw new Error(`The change wasn't edited: ${problem}.`);
  return changes.map((change, place) => (place === at ? { code, on: change.on } : change));
}

/** Why a model can't be changed so, or a dial is out of its range. */
function problemWith(code, model) {
  const problem = problemOf(code, model);
  if (problem) return problem;
  const { values } = parsed(code);
  const out = Object.keys(values).find((name) => values[name] < FIELDS[name].dial?.from || values[name] > FIELDS[name].dial?.to);
  return out ? `the ${out} is from ${FIELDS[out].dial.from} to ${FIELDS[out].dial.to}`.replace("-", "−") : "";
}

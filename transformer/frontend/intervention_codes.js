// Interventions as short texts, as links have them: `scale~blocks.0.attn.hook_z~0~~0.5`. Their fields and their words are data
// that Python reads, too; transformer/inference/intervention_kinds.py says what stands in it.

import data from "../inference/interventions.json" with { type: "json" };

/**
 * @typedef {string | number | boolean | null | number[]} Value of a field
 * @typedef {{ kind: string, values: Record<string, any> }} Intervention
 *
 * @typedef {{ title: string, tokens: string, source: string[] }} OtherText fields that have the tokens and the source of another text
 * @typedef {object} Kind
 * @property {string} class its class in Python
 * @property {string[]} fields in the order of a code; "?" where one may be empty
 * @property {string} words
 * @property {string} [title] in the menu of changes; kinds without one change a part in one of their ways
 * @property {any} [becomes]
 * @property {string} [points]
 * @property {OtherText[]} [texts]
 * @property {{ when: Record<string, number>, words: string }} [ablates]
 * @property {{ title: string, set?: Record<string, number> }[]} [offers]
 * @property {Record<string, any> & { kind: string }} [opposite]
 *
 * @typedef {{ from?: number, to?: number, step?: number, first: number | boolean }} Dial
 * @typedef {{ type: string, title?: string, bounds?: number[], dial?: Dial }} Field
 */

/** @type {Record<string, Kind>} */
export const KINDS = data.kinds;
/** @type {Record<string, Field>} */
export const FIELDS = data.fields;
/** @type {Record<string, { words: string, points: string[], needs?: string, looks_ahead?: boolean }>} */
export const RULES = data.rules;
/** @type {Record<string, { refused: string, only?: string, except?: string, without?: string }>} */
export const POINTS = data.points;
/** @type {Record<string, { title: string, points: string[], of_head?: boolean }>} */
export const PARTS = data.parts;
export const MOST_CHANGES = data.most_changes;
export const MOST_CHARACTERS = data.most_characters;
/** @type {Record<string, Record<string, string>>} */
const NAMES = data.names;

/** The names of a kind's fields, in the order of its codes. @param {string} kind */
export const fieldsOf = (kind) => KINDS[kind].fields.map((field) => field.replace("?", ""));

/** What a code says. An Error says what is wrong with it. @param {string} code @returns {Intervention} */
export function parsed(code) {
  const [kind, ...written] = code.split("~");
  if (!Object.hasOwn(KINDS, kind)) throw new Error(`there is no change called “${kind.slice(0, 30)}”; it can be ${Object.keys(KINDS).join(", ")}`);
  const { fields } = KINDS[kind];
  if (written.length !== fields.length) throw new Error(`${kind} takes ${fields.length} values, and ${written.length} are given`);
  return { kind, values: Object.fromEntries(fields.map((field, at) => [field.replace("?", ""), read(field, written[at])])) };
}

/** An intervention's code. @param {string} kind @param {Record<string, any>} values by field; what is left out is empty */
export function codeOf(kind, values) {
  return [kind, ...fieldsOf(kind).map((name) => written(name, values[name]))].join("~");
}

/** The same for two codes that differ by their dials alone. @param {string} code */
export function withoutDials(code) {
  const { kind, values } = parsed(code);
  return codeOf(kind, Object.fromEntries(Object.entries(values).filter(([name]) => !FIELDS[name].dial)));
}

/** Whether a code sets what it changes to zero. @param {Intervention} intervention */
export function ablates({ kind, values }) {
  const { ablates: ablating } = KINDS[kind];
  return Boolean(ablating) && Object.entries(ablating.when).every(([name, value]) => values[name] === value);
}

/** Whether a position depends on later ones, so that no keys and values can be cached. @param {Intervention} intervention */
export function looksAhead({ kind, values }) {
  return JSON.stringify(KINDS[kind].becomes ?? "").includes('"mean"') || RULES[values.rule]?.looks_ahead === true;
}

/** The tokens and the source of one of the other texts that an intervention reads. @param {Record<string, any>} values @param {OtherText} text */
export function otherText(values, { tokens, source }) {
  return { tokens: values[tokens], source: source.map((name) => values[name]).find((ids) => ids.length) ?? [] };
}

/** A change in plain words: "layer 0, head 0 ablated"; what can't be read, which the engine refuses, as it is. @param {string} code */
export function inWords(code) {
  try {
    const intervention = parsed(code);
    const { kind, values } = intervention;
    const { words } = ablates(intervention) ? KINDS[kind].ablates : KINDS[kind];
    const filled = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, FIELDS[name].type === "number" ? short(value) : String(value)]));
    if ("point" in values) Object.assign(filled, { module: moduleInWords(values.point), part: partInWords(values) });
    else Object.assign(filled, { rule: RULES[values.rule]?.words ?? values.rule, where: moduleInWords(values.where) });
    return words
      .replace(/\[(.*?{(\w+)}.*?)\]/, (_, optional, name) => (values[name] ? optional : ""))
      .replace(/{(\w+)}/g, (_, name) => filled[name]);
  } catch {
    return code;
  }
}

/** The same as a sentence of its own. @param {string} code */
export function sentence(code) {
  const words = inWords(code);
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}

/** A block, an attention or a norm: "decoder layer 1". @param {string} name */
export function moduleInWords(name) {
  const found = /(?:(encoder|decoder)\.)?blocks\.(\d+)\.?(\w*)/.exec(name);
  if (!found) return name.includes("ln_final") ? "the last norm" : (NAMES.sides[name] ?? name);
  const [, side, layer, part] = found;
  return `${side ? `${side} ` : ""}layer ${layer}${NAMES.modules[part] ?? ""}`;
}

/** "layer 0, head 0", "feed-forward of layer 2 at position 3". @param {{ point?: string, head?: number | null, position?: number | null }} part */
export function partInWords({ point, head = null, position = null }) {
  const where = moduleInWords(point);
  const names = point.split(".");
  const last = names.at(-1).replace(/^hook_/, "");
  const owned = names.length > 1 ? `${names.at(-2)}.${last}` : last;
  const named = NAMES.points[owned] ?? NAMES.points[last] ?? last;
  let whole = NAMES.of_the_model[owned] ?? (NAMES.whole[last] ? `${NAMES.whole[last]} ${where}` : `${where}, ${named}`);
  if (last === "embed" || last === "pos_embed") whole = `${names.length > 1 ? `the ${names[0]}'s` : "the"} ${last === "pos_embed" ? "positions" : "embedding"}`;
  if (head !== null) whole = `${where}, head ${head}${last === "z" ? "" : `, ${named}`}`;
  return position === null ? whole : `${whole} at position ${position}`;
}

/** @param {string} field its name, with "?" where it may be empty @param {string} text @returns {Value} */
function read(field, text) {
  const name = field.replace("?", "");
  if (!text && field !== name) return null;
  const { type } = FIELDS[name];
  const isReadable = { whole: /^-?\d+$/, flag: /^[01]$/, tokens: /^(\d+(\.\d+)*)?$/, number: /\S/ }[type]?.test(text) ?? true;
  const value = type === "tokens" ? text.split(".").filter(Boolean).map(Number) : type === "flag" ? text === "1" : type === "text" ? text : Number(text);
  if (!isReadable || Number.isNaN(value)) throw new Error(`${name} can't be “${text.slice(0, 40)}”`);
  return value;
}

/** @param {string} name @param {Value | undefined} value */
function written(name, value) {
  if (value === null || value === undefined) return "";
  if (FIELDS[name].type === "number" && Number.isInteger(value)) return `${value}.0`; // as Python writes it
  if (typeof value === "boolean") return value ? "1" : "0";
  return Array.isArray(value) ? value.join(".") : String(value);
}

/** Six digits, as Python's %g writes them. @param {number} value */
function short(value) {
  return String(Number(value.toPrecision(6)));
}

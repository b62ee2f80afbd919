// What the menu of changes offers for a model: parts and rules that it has, and what a change can become.

import { hookPoints, pointsWithout } from "../intervention_checks.js";
import { KINDS, PARTS, POINTS, RULES, codeOf, fieldsOf, inWords, moduleInWords, parsed, partInWords } from "../intervention_codes.js";
import { compiled } from "../intervention_formulas.js";
/** @import { Described } from "../intervention_checks.js" */

/**
 * @typedef {{ title: string, kind: string, set: Record<string, number> }} Way to change a part; set: the fields that it sets
 * @typedef {{ name: string, title: string, points: string[], ofHead: boolean, ways: Way[] }} Target what can be changed
 */

/** The ways to change a part. @type {Way[]} */
const WAYS = Object.entries(KINDS).flatMap(([kind, { offers = [] }]) => offers.map(({ title, set = {} }) => ({ title, kind, set })));

/** What of a model can be changed, and how. @param {Described} model @returns {Target[]} */
export function targetsOf(model) {
  const parts = Object.entries(PARTS).map(([name, { title, points, of_head: ofHead = false }]) => ({ name, title, ofHead, ways: WAYS, points: named(model, points) }));
  const kinds = Object.entries(KINDS).filter(([, { title }]) => title).map(([kind, { title, points }]) => ({
    name: kind, title, ofHead: true, ways: [{ title, kind, set: {} }],
    points: points ? hookPoints(model).filter((point) => point.endsWith(POINTS[points].only ?? "")) : rulesOf(model),
  }));
  return [...parts, ...kinds].filter(({ points }) => points.length);
}

/** The rules that a model follows. @param {Described} model */
export function rulesOf(model) {
  return Object.keys(RULES).filter((rule) => wheres(model, rule).length);
}

/** Where a model can go without a rule: everywhere (""), in one of its sides, in a layer. @param {Described} model @param {string} rule */
export function wheres(model, rule) {
  const points = pointsWithout(model, { rule });
  const sides = model.config.architecture === "encoder-decoder" ? ["encoder.", "decoder."] : [];
  const layers = new Set(points.flatMap((point) => /^(.+\.)?blocks\.\d+\./.exec(point)?.[0] ?? []));
  return ["", ...sides, ...layers].filter((where) => points.some((point) => point.startsWith(where)));
}

/** The hook points of what is of one kind with this one, which is among them. @param {Described} model @param {string} point */
export function alike(model, point) {
  const last = point.slice(point.lastIndexOf(".") + 1);
  return named(model, Object.values(PARTS).find(({ points }) => points.includes(last))?.points ?? [last]);
}

/** What a change can become at one press. @param {string} code @returns {{ words: string, code: string }[]} */
export function othersOf(code) {
  const { kind, values } = parsed(code);
  const { offers, opposite } = KINDS[kind];
  const isComplete = (way) => fieldsOf(way.kind).every((name) => name in way.set || ["point", "head", "position"].includes(name));
  const ways = offers ? WAYS.filter(isComplete).map((way) => ({ words: way.title, code: codeOf(way.kind, { ...values, ...way.set }) })) : [];
  if (opposite) {
    const { kind: other, ...formulas } = opposite;
    const computed = Object.fromEntries(Object.entries(formulas).map(([name, formula]) => [name, Number(compiled(formula, values)(0, null).toFixed(6))]));
    ways.splice(1, 0, { words: "Its opposite", code: codeOf(other, { ...values, ...computed }) });
  }
  return ways.filter((way) => way.code !== code);
}

/** Which hook point is of the attention that is looked at, or else of its layer; the first if none is. @param {string[]} points @param {string | null} module */
export function lookedAt(points, module) {
  const begins = module ? [module, module.slice(0, module.lastIndexOf("."))] : [];
  return begins.flatMap((begin) => points.filter((point) => point.startsWith(`${begin}.`)))[0] ?? points[0];
}

/** A hook point where the head is chosen beside it, or where there is none. @param {string} point @param {boolean} ofHead */
export function pointInWords(point, ofHead) {
  return ofHead ? moduleInWords(point) : partInWords({ point });
}

/** @param {string} where */
export function whereInWords(where) {
  return where ? moduleInWords(where) : "everywhere";
}

/** @param {string} rule */
export function ruleInWords(rule) {
  return inWords(codeOf("without", { rule, where: "" })).replace(/^w/, "W");
}

function named(model, lasts) {
  return hookPoints(model).filter((point) => lasts.includes(point.slice(point.lastIndexOf(".") + 1)));
}

// Draws the form that adds a change: what is changed, how, where, and, where another prompt is part of it, that.

import { attribute, node, put } from "../dom.js";
import { fitToText } from "../field_height.js";
import { FIELDS, KINDS, codeOf, fieldsOf, sentence } from "../intervention_codes.js";
import { drawFields, select } from "./change_fields.js";
import { lookedAt, targetsOf } from "./change_options.js";
/** @import { Described } from "../intervention_checks.js" */
/** @import { OtherText } from "../intervention_codes.js" */
/** @import { Target, Way } from "./change_options.js" */

/**
 * @typedef {{ tokens: number[], source: number[] }} Read what a decoder continues or an encoder reads; and of an encoder–decoder, its source
 * @typedef {(text: string) => Promise<Read>} Reader rejects with an Error that says in a sentence what can't be read
 * @typedef {{ module: string | null, head: number }} Looked the attention and the head that are looked at
 */

export class ChangeForm {
  /** @type {Record<string, any>} what was chosen, by field; of another prompt, what was typed */ chosen = {};
  /** @type {Described | null} */ model = null;
  /** @type {Looked} */ looked = { module: null, head: 0 };
  /** @type {Target[]} */ targets = [];
  /** @type {Target | undefined} */ target;
  /** @type {Way | undefined} */ way;
  /** @type {OtherPrompt[]} */ prompts = [];
  length = 0; // tokens of the visitor's prompt

  /** @param {HTMLElement} parent @param {{ read: Reader, add: (code: string) => void }} host */
  constructor(parent, { read, add }) {
    this.read = read;
    this.root = node("div", "change-form", parent);
    this.showWhat = select(this.root, "What", (name) => this.choose(this.targets.find((target) => target.name === name)), () => this.targets.map(({ name, title }) => [name, title]), () => this.target.name);
    this.showHow = select(this.root, "How", (at) => this.choose(this.target, this.target.ways[Number(at)]), () => this.target.ways.map(({ title }, at) => [String(at), title]), () => String(this.target.ways.indexOf(this.way)));
    this.fields = node("div", "change-form", this.root);
    this.note = node("p", "change-note", this.root);
    this.sentence = node("p", "change-sentence", this.root);
    attribute(this.sentence, "role", "status");
    this.button = Object.assign(node("button", "change-add", this.root), { type: "button" });
    put(this.button, "Change this");
    this.button.addEventListener("click", () => add(this.code));
  }

  /** Let the form be of the head that is looked at, until another is chosen. */
  reset() {
    Object.assign(this.chosen, { point: null, head: null });
    this.update();
  }

  /** @param {Described} model @param {Looked} looked @param {number} length tokens of the visitor's prompt */
  show(model, looked, length) {
    const isOther = model !== this.model;
    Object.assign(this, { model, looked, length });
    if (!isOther) {
      this.update();
      return;
    }
    this.chosen = {};
    this.targets = targetsOf(model);
    this.root.hidden = !this.targets.length;
    if (this.targets.length) this.choose(this.targets[0]);
  }

  /** @param {Target} target @param {Way} [way] */
  choose(target, way = target.ways.includes(this.way) ? this.way : target.ways[0]) {
    Object.assign(this, { target, way });
    const { kind, set } = way;
    this.fields.replaceChildren();
    this.showFields = drawFields(this.fields, this.model, { kind, set, points: target.points, ofHead: target.ofHead, become: (values) => this.become(values) });
    this.prompts = (KINDS[kind].texts ?? []).map((text) => new OtherPrompt(this.fields, this, text));
    this.update();
  }

  /** @param {Record<string, any>} values that were chosen */
  become(values) {
    Object.assign(this.chosen, values);
    this.update();
  }

  /** The values of all fields: what was chosen, or else what is looked at. */
  get values() {
    const { chosen, looked, model, target, way } = this;
    const first = { head: Math.min(looked.head, model.config.n_heads - 1), query: 0, key: 0, rule: target.points[0], where: "", position: null };
    /** @type {Record<string, any>} */
    const values = Object.fromEntries(fieldsOf(way.kind).map((name) => [name, chosen[name] ?? FIELDS[name].dial?.first ?? first[name] ?? null]));
    if ("point" in values && !target.points.includes(values.point)) values.point = lookedAt(target.points, looked.module);
    if ("head" in values && !target.ofHead) values.head = null;
    return { ...values, ...way.set };
  }

  /** The code of what is chosen; null while another prompt is missing. */
  get code() {
    if (this.prompts.some(({ read }) => !read)) return null;
    return codeOf(this.way.kind, Object.assign(this.values, ...this.prompts.map((prompt) => prompt.values)));
  }

  update() {
    if (!this.target) return;
    this.showWhat({});
    this.showHow({});
    this.showFields(this.values);
    const { code } = this;
    this.sentence.hidden = code === null; // what is missing is said below the prompt's field
    this.button.hidden = code === null;
    if (code !== null) put(this.sentence, `The change: ${sentence(code)}`);
    const there = this.way.kind === "from" && code !== null ? this.prompts[0].length : Infinity;
    this.note.hidden = there >= this.length;
    put(this.note, this.note.hidden ? "" : `The other prompt has ${there} ${there === 1 ? "token" : "tokens"}, and yours ${this.length}: what comes after stays as it is. With two prompts of one length all of it is replaced.`);
  }
}

/** The field of another prompt, which is read while it is typed. */
class OtherPrompt {
  /** @type {Read | null} */ read = null;
  isReading = false;

  /** @param {HTMLElement} parent @param {ChangeForm} form @param {OtherText} text the fields that it fills */
  constructor(parent, form, text) {
    this.form = form;
    this.text = text;
    const label = node("label", "change-prompt", parent);
    put(node("span", "", label), text.title);
    this.field = Object.assign(node("textarea", "", label), { rows: 2, spellcheck: false, value: form.chosen[text.title] ?? "" });
    fitToText(this.field);
    this.problem = node("p", "change-problem", parent);
    attribute(this.problem, "role", "status");
    this.field.addEventListener("input", () => this.follow());
    this.follow();
  }

  /** The fields that another prompt fills. */
  get values() {
    const { tokens, source: [source] } = this.text;
    return { [tokens]: this.read.tokens, [source]: this.read.source };
  }

  get length() {
    return (this.read.source.length ? this.read.source : this.read.tokens).length;
  }

  /** Read what is typed. While a text is being read, only the last of those that follow is read next. */
  async follow() {
    const { form, text: { title } } = this;
    form.chosen[title] = this.field.value;
    this.read = null;
    if (this.isReading) return;
    this.isReading = true;
    let problem;
    let typed;
    do {
      typed = this.field.value;
      problem = await this.take(typed);
    } while (typed !== this.field.value);
    this.isReading = false;
    put(this.problem, problem);
    this.problem.hidden = !problem;
    form.update();
  }

  /** Read one text. Returns what is wrong with it. @param {string} typed */
  async take(typed) {
    const { form, text: { title } } = this;
    if (!typed) return `Type a prompt into “${title}”.`;
    try {
      const { tokens, source } = await form.read(typed);
      const most = form.model.config.context_length;
      const { length } = source.length ? source : tokens;
      if (length > most) return `“${title}” has ${length} tokens, and this model reads at most ${most}.`;
      this.read = { tokens: tokens.slice(0, most), source };
      return "";
    } catch (error) {
      return /** @type {Error} */ (error).message;
    }
  }
}

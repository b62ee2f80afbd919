// The menu of changes: the list of changes, each with a menu of its own, and the form that adds one. It tells its host of the changes
// that result; the host shows the changed model.

import { changed, changesIn, readChanges } from "../changes.js";
import { arrange, attribute, focusedIn, node, put } from "../dom.js";
import { codeOf, inWords, parsed } from "../intervention_codes.js";
import { drawFields } from "./change_fields.js";
import { ChangeForm } from "./change_form.js";
import { othersOf } from "./change_options.js";
/** @import { Changes, Wish } from "../changes.js" */
/** @import { Described } from "../intervention_checks.js" */
/** @import { Looked, Reader } from "./change_form.js" */

/**
 * @typedef {object} Shown
 * @property {Changes} changes
 * @property {Described} model
 * @property {Looked} [looked]
 * @property {number} [length] tokens of the prompt
 */

export class ChangesMenu {
  /** @type {ChangeItem[]} */ items = [];
  /** @type {Shown | null} */ shown = null;

  /** @param {HTMLElement} parent @param {{ read: Reader, change: (changes: Changes) => void }} host read: another prompt */
  constructor(parent, { read, change }) {
    this.change = change;
    this.root = node("div", "changes-menu", parent);
    this.list = node("ul", "", this.root);
    attribute(this.list, "aria-label", "Changes of the model");
    const acts = node("div", "change-acts", this.root);
    this.undo = button(acts, "Undo", () => this.wish({ undo: true }));
    this.clear = button(acts, "Take all back", () => this.wish({ clear: true }));
    this.problem = node("p", "change-problem", this.root);
    attribute(this.problem, "role", "alert");
    put(node("h3", "", this.root), "Change the model");
    this.form = new ChangeForm(this.root, { read, add: (code) => this.wish({ add: [code] }) });
  }

  /** The menu is opened: its form is of the head that is looked at. */
  open() {
    this.form.reset();
  }

  /** @param {Shown} shown */
  show(shown) {
    const { changes, model, looked = { module: null, head: 0 }, length = 0 } = shown;
    this.shown = shown;
    const hadFocus = this.list.contains(focusedIn(this.list));
    const listed = changesIn(readChanges(changes.now, model).now);
    const stay = new Set(listed.map(({ code }) => code));
    this.items = listed.map(({ code, on }, at) => {
      const edited = stay.has(this.items[at]?.code) ? undefined : this.items[at];
      const known = [this.items.find((item) => item.code === code), edited].find((item) => item?.fits(code, model));
      const item = known ?? new ChangeItem(model, code, (wish) => this.wish(wish));
      item.show(code, { on, at });
      return item;
    });
    arrange(this.list, this.items.map(({ root }) => root));
    this.list.hidden = !listed.length;
    this.undo.hidden = !listed.length && !changes.before.length;
    this.undo.disabled = !changes.before.length;
    this.clear.hidden = listed.length < 2;
    if (hadFocus && !this.list.contains(focusedIn(this.list))) this.undo.focus(); // what had it was removed
    this.form.show(model, looked, length);
  }

  /** @param {Wish} wish */
  wish(wish) {
    let { changes } = this.shown;
    let problem = "";
    try {
      changes = changed(changes, wish, this.shown.model);
    } catch (error) {
      problem = /** @type {Error} */ (error).message;
    }
    put(this.problem, problem);
    const isOther = changes !== this.shown.changes;
    this.show({ ...this.shown, changes }); // a control whose wish can't be says again what is
    if (isOther) this.change(changes);
  }
}

/** A change in the list: on or off, its menu, and what takes it back. */
class ChangeItem {
  at = 0; // its number

  /** @param {Described} model @param {string} code @param {(wish: Wish) => void} wish */
  constructor(model, code, wish) {
    const { kind, values: { head } } = parsed(code);
    this.model = model;
    this.code = code;
    this.root = node("li", "", null);
    const label = node("label", "change-check", this.root);
    this.on = Object.assign(node("input", "", label), { type: "checkbox" });
    this.on.addEventListener("change", () => wish({ toggle: this.at }));
    this.words = node("span", "", label);
    this.back = button(this.root, "Remove", () => wish({ remove: [this.code] }));
    const menu = node("details", "", this.root);
    this.summary = node("summary", "", menu);
    put(this.summary, "Edit");
    const fields = node("div", "change-menu", menu);
    this.others = node("div", "change-acts", fields);
    this.replace = (made) => wish({ replace: [this.at, made] });
    const become = (values) => this.replace(codeOf(kind, { ...parsed(this.code).values, ...values }));
    this.showFields = drawFields(fields, model, { kind, ofHead: head !== null, set: kind === "without" ? { rule: "" } : {}, become });
  }

  /** Whether this can show another code: one of the same kind, of a head or of none. @param {string} code @param {Described} model */
  fits(code, model) {
    const [own, other] = [this.code, code].map(parsed);
    return model === this.model && own.kind === other.kind && (own.values.head === null) === (other.values.head === null);
  }

  /** @param {string} code @param {{ on: boolean, at: number }} place */
  show(code, { on, at }) {
    this.code = code;
    this.at = at;
    this.on.checked = on;
    const words = inWords(code);
    put(this.words, words);
    attribute(this.summary, "aria-label", `Edit: ${words}`);
    attribute(this.back, "aria-label", `Remove: ${words}`);
    const others = othersOf(code);
    const key = JSON.stringify(others.map((other) => other.words));
    if (this.others.dataset.key !== key) {
      this.others.dataset.key = key;
      this.others.replaceChildren();
      for (const { words: title } of others) button(this.others, title, () => this.replace(othersOf(this.code).find((other) => other.words === title).code));
    }
    this.showFields(parsed(code).values);
  }
}

/** @param {HTMLElement} parent @param {string} title @param {() => void} act */
function button(parent, title, act) {
  const made = Object.assign(node("button", "", parent), { type: "button" });
  put(made, title);
  made.addEventListener("click", act);
  return made;
}

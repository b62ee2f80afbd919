// The buttons and settings of generation: number of tokens, pace, sampling, and the attention shown.
import { offer, put } from "../dom.js";

const WORDS = { top_k: { 0: "off" }, top_p: { 1: "off" } };
const DIGITS = { temperature: 2, top_p: 2 };
const BUTTONS = ["generate", "writeOne", "stop", "clear", "undo"];

export class Controls {
  /** press(name): a button of `BUTTONS`; set(name, value): a setting. */
  constructor(parts, { press, set }) {
    this.parts = parts;
    this.settings = {};
    for (const input of parts.root.querySelectorAll("[data-setting]")) this.settings[input.dataset.setting] = input;
    this.values = Object.fromEntries([...parts.root.querySelectorAll("[data-value]")].map((value) => [value.dataset.value, value]));
    for (const name of BUTTONS) parts[name].addEventListener("click", () => press(name));
    for (const [name, input] of Object.entries(this.settings)) {
      const isList = input.tagName === "SELECT";
      input.addEventListener(isList ? "change" : "input", () => {
        const value = isList ? this.lists[name][input.selectedIndex]?.[0] : Number(input.value);
        if (isList || (input.value !== "" && this.isWithin(input, value))) set(name, value);
      });
      // An invalid entry is replaced by the value in force.
      if (input.type === "number") input.addEventListener("change", () => this.shown && (input.value = this.shown[name]));
    }
    this.lists = {};
  }

  isWithin({ min, max, type }, value) {
    return value >= Number(min) && value <= Number(max) && (type !== "number" || Number.isInteger(value));
  }

  /** choices: { layers, heads, attentions, paces }; lists of [value, words]. */
  offer({ layers, heads, attentions, paces }) {
    const numbered = (count, word) => Array.from({ length: count }, (_, at) => [at, `${word} ${at}`]);
    this.list("layer", numbered(layers, "layer"));
    this.list("head", numbered(heads, "head"));
    this.list("attention", attentions ?? []);
    this.list("pace", paces ?? []);
  }

  list(name, entries) {
    this.lists[name] = entries;
    offer(this.settings[name], entries);
    this.settings[name].hidden = !entries.length;
  }

  show(controls) {
    this.shown = controls;
    for (const [name, input] of Object.entries(this.settings)) {
      const value = controls[name];
      if (this.lists[name]) {
        const at = this.lists[name].findIndex(([choice]) => choice === value);
        if (input.selectedIndex !== at) input.selectedIndex = at;
        continue;
      }
      // Don't overwrite a number while it is typed.
      if (Number(input.value) !== value && !(input.type === "number" && input.matches(":focus"))) input.value = value;
      if (this.values[name]) put(this.values[name], WORDS[name]?.[value] ?? value.toFixed(DIGITS[name] ?? 0));
    }
    const hidden = controls.attention === null;
    if (this.parts.heads.hidden !== hidden) this.parts.heads.hidden = hidden;
  }

  /** can: { generate, writeOne, … }: which buttons are enabled. A focused button that no longer is passes the focus on. */
  allow(can) {
    const { parts } = this;
    const focused = parts.root.getRootNode().activeElement;
    const buttons = BUTTONS.map((name) => parts[name]);
    BUTTONS.forEach((name) => parts[name].disabled === can[name] && (parts[name].disabled = !can[name]));
    if (buttons.includes(focused) && focused.disabled) buttons.find((button) => !button.disabled)?.focus({ preventScroll: true });
  }
}

// The field of a second prompt: typed, suggested, or one of the pairs that suit the model.

import { button, choice, node, offer, put } from "../dom.js";
import { fitToText } from "../field_height.js";
import { pageState } from "../page/page_state.js";

const SHOWN = 24; // characters of a prompt of a pair,
const BEFORE = 6; // and how many of them stand before the first that differs

/** @typedef {{ text: string, suggested: string | null, pairs: { prompts: [string, string], continues: boolean }[], problem: string | null }} OtherPrompt */

export class OtherPromptField {
  /** @type {OtherPrompt} */ other;
  prompt = ""; // the page's own

  /** @param {HTMLElement} parent @param {import("../page/view_frame.js").ViewFrame} host @param {{ offersPairs?: boolean }} [options] */
  constructor(parent, host, { offersPairs = false } = {}) {
    this.host = host;
    const root = node("div", "what-if-row other-prompt", parent);
    const label = node("label", "", root);
    label.append("Another prompt ");
    this.field = node("textarea", "", label);
    this.field.rows = 1;
    this.field.spellcheck = false;
    this.fit = fitToText(this.field);
    this.field.addEventListener("change", () => set({ other_prompt: this.field.value === this.other.suggested ? null : this.field.value }));
    this.suggest = button(root, "Suggest another prompt", () => set({ other_prompt: null }), { className: "act" });
    this.pairs = choice(root, "Pairs", (at) => this.take(this.other.pairs[Number(at)]));
    this.pairs.title = "Pairs of prompts that work well with this model.";
    this.offersPairs = offersPairs;
    this.swap = button(root, "Swap the prompts", () => this.choose(this.other.text, this.prompt), { className: "act" });
    this.swap.hidden = !offersPairs;
    this.problem = node("p", "what-if-problem", parent);
    this.problem.setAttribute("role", "status");
  }

  /** @param {OtherPrompt} other @param {string} prompt */
  show(other, prompt) {
    Object.assign(this, { other, prompt });
    if (this.shown !== other.text) this.field.value = this.shown = other.text;
    this.fit();
    this.suggest.hidden = other.suggested === null || other.text === other.suggested;
    this.pairs.parentElement.hidden = !this.offersPairs || !other.pairs.length;
    offer(this.pairs, [["", "Choose a pair"], ...other.pairs.map(({ prompts: [one, two] }, at) => [at, `${shortened(one, two)} | ${shortened(two, one)}`])], true);
    this.pairs.value = "";
    put(this.problem, other.problem ?? "");
    this.problem.hidden = !other.problem;
  }

  /** @param {{ prompts: [string, string], continues: boolean }} pair */
  take({ prompts: [own, other], continues }) {
    this.choose(own, other, continues ? { reads: "plain" } : {}); // to be gone on with, not answered
  }

  /** Have these two prompts. @param {string} prompt @param {string} other @param {Record<string, string>} [more] */
  choose(prompt, other, more = {}) {
    this.host.choose({ prompt, other_prompt: other, own_token: null, other_token: null, ...more });
  }
}

const set = (values) => pageState().set({ own_token: null, other_token: null, ...values });

/** A text as far as there is room, marked where it begins to differ from the one beside it. @param {string} text @param {string} beside */
export function shortened(text, beside) {
  const inOneLine = (part) => part.replaceAll("\n", " ↵ ");
  if (text.length <= SHOWN) return inOneLine(text);
  const length = SHOWN - 2;
  const found = [...text].findIndex((character, at) => at >= beside.length || character !== beside[at]);
  const differs = found < 0 || found >= beside.length ? text.length : found;
  const begin = differs >= text.length - length ? text.length - length : Math.max(differs - BEFORE, 0);
  return `${begin ? "…" : ""}${inOneLine(text.slice(begin, begin + length))}${begin + length < text.length ? "…" : ""}`;
}

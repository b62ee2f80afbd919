// Shows activation patching: how far each activation, put in from another prompt, turns the answer into the other's.

import { changedSentence } from "../changes.js";
import { node, offer, partsOf, put } from "../dom.js";
import { codeOf, moduleInWords } from "../intervention_codes.js";
import { percent } from "../number_format.js";
import { pageState } from "../page/page_state.js";
import { inOrder } from "./distributions.js";
import { PythonDrawer, TableDrawer } from "./drawers.js";
import { EffectHeatmaps } from "./effects.js";
import { LongRequest } from "./long_request.js";
import { NoLayers } from "./no_layers.js";
import { OtherPromptField } from "./other_prompt.js";
import { linesOfPatching } from "./python_lines.js";
/** @import { Side } from "./data.js" */
/** @import { EffectMatrix } from "./effects.js" */
/** @import { OtherPrompt } from "./other_prompt.js" */
/** @import { WhatIfView } from "./view.js" */

/**
 * @typedef {object} PatchingAbout
 * @property {OtherPrompt} other
 * @property {[Side, Side] | null} sides the page's own prompt and the other; null where these can't be patched
 * @property {("self" | "encoder" | "decoder")[]} stacks
 * @property {boolean} patched whether patches are in force
 * @property {boolean} hasParts whether the model has layers
 * @property {{ name: string, title: string } | null} able of a model without, one that has attention
 * @property {string} prompt
 * @property {boolean} isCausal
 * @property {{ code: string, words: string }[]} interventions
 * @property {string} file
 *
 * @typedef {{ sites: string[], points: string[][], restored: number[][][], clean: number, corrupted: number }} Patching what /api/patching answers
 */

const MOST_TOKENS = 96; // that can be patched, from the first that differs: each takes three passes a layer
const CHOOSABLE = 300; // tokens that can be compared
const BEFORE = 2; // tokens that are drawn before the first that differs
const SLIGHT = 0.1; // a share that isn't worth a word
const PITCH = 28; // pixels of a row
const SITES = {
  stream: "The residual stream, as it enters a layer", attention: "What attention adds", "cross-attention": "What cross-attention adds",
  "feed-forward": "What the feed-forward layer adds",
};
const STACKS = { encoder: "In the encoder, over the source", decoder: "In the decoder, over the tokens it has read" };
const DIALS = { own_token: "Answer to your prompt", other_token: "Answer to the other" };
const MARKUP = `
  <div data-part="prompt"></div>
  <div class="what-if-row" data-part="dials"></div>
  <p class="faint" data-part="notice" hidden></p>
  <p class="faint" data-part="how"></p>
  <div data-part="stacks"></div>
  <div data-part="long"></div>
  <p class="faint" data-part="changed"></p>
  <p class="faint" data-part="explained"></p>
  <div data-part="drawers"></div>`;

export class ActivationPatching {
  /** @type {PatchingAbout} */ about;
  /** @type {StackPicture[]} */ pictures = [];
  /** @type {Float64Array[]} */ logs = [];

  /** @param {HTMLElement} root @param {WhatIfView} page */
  constructor(root, page) {
    this.page = page;
    root.innerHTML = MARKUP; // constant
    this.parts = partsOf(root);
    this.noLayers = new NoLayers(root, (name) => page.host.choose({ model: name }));
    this.field = new OtherPromptField(this.parts.prompt, page.host, { offersPairs: true });
    this.selects = Object.entries(DIALS).map(([name, title]) => {
      const label = node("label", "", this.parts.dials);
      label.append(`${title} `);
      const select = node("select", "", label);
      select.setAttribute("aria-label", title);
      select.addEventListener("change", () => {
        page.host.select({ [name]: select.value === String(this.usual[name]) ? null : select.value });
        this.ask();
      });
      return select;
    });
    this.long = new LongRequest(this.parts.long, { ask: "Trace", does: "Each position is patched in turn." });
    this.table = new TableDrawer(this.parts.drawers, "These shares as a table");
    this.python = new PythonDrawer(this.parts.drawers);
  }

  /** @param {PatchingAbout} about */
  async show(about) {
    this.about = about;
    const { page, parts, field } = this;
    const { sides, other, prompt, isCausal } = about;
    this.noLayers.show(about);
    const problem = other.problem ?? this.tooLong();
    field.show({ ...other, problem }, prompt);
    const isShown = about.hasParts && Boolean(sides) && !problem;
    parts.prompt.hidden = !about.hasParts;
    for (const name of ["dials", "how", "stacks", "changed", "explained", "drawers", "long"]) parts[name].hidden = !isShown;
    if (!isShown) return;
    this.names = await page.namesOf(sides[0]);
    this.logs = await Promise.all(sides.map((side) => page.distribution(side)));
    const usual = answersOf(this.logs);
    this.usual = { own_token: usual[0], other_token: usual[1] };
    put(parts.how, `Each cell runs your prompt (clean) with one activation copied in from the other prompt (corrupted). 0: no effect. 1: the logit difference becomes that of the other prompt.${isCausal ? " Tokens well before the first that differs are left out: they are the same in both." : ""}${about.patched ? " Patches that are already in force are left out of this map." : ""}`);
    this.ask();
  }

  setSelection() {
    if (this.about?.sides && this.logs.length) this.ask();
  }

  draw() {
    for (const picture of this.pictures) picture.effects.draw();
  }

  /** Why two prompts of one length can't be patched. */
  tooLong() {
    const { sides, isCausal } = this.about;
    if (!sides) return null;
    const [one, other] = sides.map(({ tokens, source }) => (source.length ? source : tokens));
    const differing = one.length - one.findIndex((id, at) => id !== other[at]);
    if (isCausal && differing > MOST_TOKENS) return `From the first token that differs to the end there are ${differing} tokens; at most ${MOST_TOKENS} can be traced. Let the prompts differ later, or shorten both.`;
    return !isCausal && one.length > MOST_TOKENS ? `The prompts have ${one.length} tokens; at most ${MOST_TOKENS} can be traced. Shorten both.` : null;
  }

  /** The two tokens whose logits are compared: the likeliest, unless others are chosen. */
  get answers() {
    return Object.keys(DIALS).map((name) => {
      const wish = pageState().number(name);
      return wish !== null && wish < this.names.length ? wish : this.usual[name];
    });
  }

  async ask() {
    const { about: { sides, stacks, isCausal }, answers, names, logs, page, parts } = this;
    const wishes = Object.keys(DIALS).map((name) => pageState().number(name));
    const unknown = wishes.find((wish) => wish !== null && wish >= names.length);
    parts.notice.hidden = unknown === undefined;
    put(parts.notice, unknown === undefined ? "" : `This model has no token ${unknown}; the likeliest is taken.`);
    const likeliest = inOrder(logs[0].map((log, id) => Math.max(log, logs[1][id])), CHOOSABLE);
    this.selects.forEach((select, at) => {
      const ids = [...new Set([Object.values(this.usual)[at], ...likeliest, answers[at]])];
      offer(select, ids.map((id) => [id, `${names[id]}   ${logs.map((log) => percent(Math.exp(log[id]))).join(" | ")}`]), true);
      select.value = String(answers[at]);
      select.title = `Its probability ${isCausal ? "after" : "in"} your prompt and ${isCausal ? "after" : "in"} the other one.`;
    });
    const key = JSON.stringify([sides, answers]);
    if (key === this.asked && this.found) {
      this.showAll();
      return;
    }
    this.asked = key;
    const [own, other] = sides;
    const api = page.api(own, { onServer: true });
    page.host.fetch(async () => {
      const found = [];
      for (const stack of stacks) {
        const values = { clean_tokens: other.tokens.join(), clean_source: other.source.join() || null, answer: answers[1], against: answers[0], stack };
        const stream = (signal) => api.stream("patching", values, { signal });
        found.push(await this.long.run(JSON.stringify([sides, stack]), stream, page.modelOf(own).isLarge));
      }
      return found;
    }, (found) => {
      if (key !== this.asked) return;
      this.found = found;
      this.showAll();
    });
  }

  showAll() {
    const { about, found, names, parts, page, answers } = this;
    while (this.pictures.length > found.length) this.pictures.pop().root.remove();
    while (this.pictures.length < found.length) this.pictures.push(new StackPicture(parts.stacks, (code, isInForce) => page.host.change({ add: isInForce ? [] : [code], remove: isInForce ? [code] : [] })));
    found.forEach((patching, at) => this.pictures[at].show(about, about.stacks[at], patching, names));
    this.explain(answers);
    this.table.offer(`${about.file}-patching.csv`, () => ({
      columns: ["hook point", "position", "token", "other token", "share"],
      rows: found.flatMap(({ points, restored }, at) => {
        const [own, other] = about.sides.map((side) => textOf(side, about.stacks[at]));
        return points.flatMap((layers, site) => layers.flatMap((point, layer) => own.map((id, position) => [point, position, names[id], names[other[position]], restored[site][layer][position]])));
      }),
    }));
    this.python.show(linesOfPatching(about, page.modelOf(about.sides[0]), answers));
  }

  /** @param {number[]} answers */
  explain([own, other]) {
    const { about: { sides, isCausal, interventions }, names, logs } = this;
    const where = isCausal ? "after" : "in";
    const [first, then] = logs.map((log) => signed(log[other] - log[own]));
    const read = sides[0].source.length ? sides[0].tokens.slice(1) : [];
    const whose = read.length ? ` Its decoder has read “${read.map((id) => names[id]).join(" ")}” by then, which both sources begin with.` : "";
    const [one, two] = logs.map((log) => inOrder(log, 1)[0]);
    const same = one === two ? " Both prompts lead to the same likeliest token, so this is about the two whose probabilities move most." : "";
    const changed = changedSentence(interventions.map(({ code }) => code));
    put(this.parts.changed, changed);
    this.parts.changed.hidden = !changed;
    put(this.parts.explained, `Logit difference: the logit of “${names[other]}” minus that of “${names[own]}”, ${first} ${where} your prompt, ${then} ${where} the other one.${whose}${same} A cell is (patched − yours) ÷ (the other's − yours).`);
  }
}

/** A heatmap for each kind of hook point of a stack. Choosing a cell patches it, on every page. */
class StackPicture {
  /** @type {string[][][]} */ codes = []; // by site, layer and position from the first that is drawn

  /** @param {HTMLElement} parent @param {(code: string, isInForce: boolean) => void} choose */
  constructor(parent, choose) {
    this.root = node("section", "", parent);
    this.title = node("h2", "", this.root);
    this.effects = new EffectHeatmaps(node("div", "", this.root), ({ matrix, row, column }) => {
      const code = this.codes[matrix][row][column];
      choose(code, this.inForce.has(code));
    });
    this.begins = node("p", "faint", this.root);
    this.words = node("p", "", this.root);
  }

  /** @param {PatchingAbout} about @param {"self" | "encoder" | "decoder"} stack @param {Patching} patching @param {string[]} names */
  show({ sides, isCausal, interventions }, stack, { sites, points, restored }, names) {
    this.inForce = new Set(interventions.map(({ code }) => code));
    const [own, others] = sides.map((side) => textOf(side, stack));
    const differing = Math.max(own.findIndex((id, at) => id !== others[at]), 0);
    const first = isCausal && stack !== "encoder" ? Math.max(differing - BEFORE, 0) : 0; // else what differs is seen from before it, too
    const drawn = own.map((id, at) => ({ at, label: names[id], other: names[others[at]] })).slice(first);
    this.codes = points.map((layers) => layers.map((point) => drawn.map(({ at }) => codeOf("from", { point, position: at, tokens: sides[1].tokens, source: sides[1].source }))));
    /** @type {EffectMatrix[]} */
    const matrices = sites.map((site, number) => ({
      title: SITES[site], values: restored[number].map((shares) => shares.slice(first)), rows: points[number].map(moduleInWords),
      columns: drawn.map(({ at, label, other }) => `position ${at}, ${label}${label === other ? "" : ` (the other prompt has ${other})`}`),
      rowLabels: points[number].map((_, layer) => `layer ${layer}`), columnLabels: drawn.map(({ label, other }) => (label === other ? label : `${label}|${other}`)),
      marked: this.codes[number].flatMap((codes, row) => codes.flatMap((code, column) => (this.inForce.has(code) ? [/** @type {[number, number]} */ ([row, column])] : []))),
    }));
    put(this.title, STACKS[stack] ?? "");
    this.title.hidden = !STACKS[stack];
    this.effects.show({
      name: STACKS[stack] ?? "Effect of each patch", matrices, limit: 1, pitch: PITCH, actions: ["patch it, on every page", "take the patch back"],
      sentences: ["Patching {cell} moves the logit difference {value} of the way to that of the other prompt.", "Patching {cell} moves the logit difference {value} of the way in the other direction."],
    });
    put(this.begins, first ? `The prompts differ from position ${differing} on, and the map begins at ${first}: where they are the same before that, patching changes nothing.` : "");
    put(this.words, inWords(own.map((id) => names[id]), sites, restored));
  }
}

/** @param {Side} side @param {string} stack */
const textOf = (side, stack) => (stack === "encoder" ? side.source : side.tokens);

/** The likeliest next token of each prompt; where that is the same, the tokens for which the other prompt does most harm and most good. @param {Float64Array[]} logs */
export function answersOf([own, other]) {
  const [one, two] = [own, other].map((log) => inOrder(log, 1)[0]);
  if (one !== two) return [one, two];
  const moved = own.map((log, id) => (other[id] - log) * Math.exp(Math.max(log, other[id])));
  return [inOrder(moved.map((value) => -value), 1)[0], inOrder(moved, 1)[0]];
}

/** Where in the stream the difference stands, layer by layer, and which sublayers carry most of it. @param {string[]} labels @param {string[]} sites @param {number[][][]} restored */
export function inWords(labels, sites, restored) {
  return sites.flatMap((site, number) => {
    const layers = restored[number];
    if (site === "stream") return [pathInWords(labels, layers)];
    const best = layers.map((shares) => inOrder(shares, 1)[0]);
    const [layer] = inOrder(layers.map((shares, at) => shares[best[at]]), 1);
    const [position, share] = [best[layer], layers[layer][best[layer]]];
    return share > SLIGHT ? [`${SITES[site]} matters most in layer ${layer} at position ${position}, “${labels[position]}”: ${share.toFixed(2)}.`] : [];
  }).join(" ");
}

/** The position that carries most of the stream's difference, from layer to layer. @param {string[]} labels @param {number[][]} layers shares by layer and position */
function pathInWords(labels, layers) {
  /** @type {{ position: number, run: number[] }[]} */
  const runs = [];
  layers.forEach((shares, layer) => {
    const [position] = inOrder(shares, 1);
    if (runs.at(-1)?.position === position) runs.at(-1).run.push(layer);
    else runs.push({ position, run: [layer] });
  });
  const steps = runs.flatMap(({ position, run }) => {
    const shares = run.map((layer) => layers[layer][position]);
    if (Math.max(...shares) <= SLIGHT) return [];
    const [low, high] = [Math.min(...shares), Math.max(...shares)].map((share) => share.toFixed(2));
    const where = run.length === 1 ? `layer ${run[0]}` : `layers ${run[0]} to ${run.at(-1)}`;
    return [`into ${where} at position ${position}, “${labels[position]}” (${low === high ? high : `${low} to ${high}`})`];
  });
  return steps.length ? `The residual stream carries the difference ${steps.join(", then ")}.` : "No single position of the residual stream carries much of the difference.";
}

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

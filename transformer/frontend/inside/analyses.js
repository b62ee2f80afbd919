// Draws the analyses below the picture: the logit lens for every token, direct logit attribution, the circuits of a
// head, and whether the pass agrees with its equations.

import { largestAbsolute, sumOf } from "../arithmetic.js";
import { isCausal } from "../attention_config.js";
import { attribute, heading, node, put, putBoth, tableBox, tableOf, untranslated } from "../dom.js";
import { percent, plainNumber } from "../number_format.js";
import { Circuits } from "./circuits.js";
import { FOLDS } from "./selection.js";
import { fullName, sublayerName } from "./plain_names.js";
/** @import { Chosen } from "./selection.js" */
/** @import { Structure } from "./structure.js" */

/** @typedef {HTMLDetailsElement & { body: HTMLElement }} Fold */

const TITLES = { lens: "Logit lens by layer", who: "Direct logit attribution", circuits: "Circuits", checks: "Checks" };
// The words for what a causal model and an encoder predict, and its distance from the token that is read.
const NEXT = { where: "next", asked: "that follows in the text.", at: "after", away: 1, which: "which follows" };
const OWN = { where: "at each position", asked: "that stands there, unless it is masked. In training, only masked positions count.", at: "at", away: 0, which: "which stands here" };
const predicting = ({ config }) => (isCausal(config) ? NEXT : OWN);
const EQUAL = 1e-4; // relative difference up to which a logit equals the sum of its parts

export class Analyses {
  /** @type {Fold} */ lens;
  /** @type {Fold} */ who; // direct logit attribution, as links name it
  /** @type {Fold} */ checks;
  /** @type {Circuits} */ circuits;
  /** @type {number | null} */ candidate;
  /** @type {Structure} */ structure;

  /** events: open(name), token(token), choose(change) with { folds, candidate, circuit }. */
  constructor(parent, events) {
    // The toggle event arrives late, so a choice may come first, and tells which folds are open.
    const choose = (change) => events.choose({ folds: FOLDS.filter((name) => this.folds[name].open), ...change });
    this.events = { ...events, choose };
    /** @type {Record<string, Fold>} */
    this.folds = Object.fromEntries(Object.entries(TITLES).map(([name, title]) => [name, fold(parent, title, () => choose({}))]));
    Object.assign(this, this.folds, { circuits: new Circuits(this.folds.circuits, this.events) });
    parent.addEventListener("click", (event) => this.onClick(event));
  }

  /** Show a new pass. @param {Structure} structure of its model */
  begin(pass, structure) {
    this.structure = structure;
    this.circuits.begin(pass, structure);
  }

  /** Show a selection. @param {Chosen} chosen */
  setSelection({ folds, candidate, circuit }) {
    for (const name of FOLDS) {
      const isOpen = folds.includes(name);
      if (this.folds[name].open !== isOpen) this.folds[name].open = isOpen;
    }
    this.candidate = candidate;
    this.circuits.setSelection(circuit);
  }

  onClick(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const { open, token, candidate } = button.dataset;
    if (open !== undefined) this.events.open(open);
    if (token !== undefined) this.events.token(Number(token));
    if (candidate !== undefined) this.events.choose({ candidate: Number(candidate) });
  }

  /** The parts that the open folds need. */
  needs(pass, token) {
    const wanted = [];
    const chosen = this.chosenOf(pass, token);
    if (this.who.open && !pass.more[attributionOf(token, chosen)]) wanted.push(["attribution", token, chosen]);
    if (this.who.open) wanted.push(...pass.missing("logits", pass.isByRow("logits") ? token : null));
    if (this.checks.open && !pass.partMetadata.checks) wanted.push(["checks"]);
    return [...wanted, ...this.circuits.needs(pass)];
  }

  chosenOf(pass, token) {
    return this.candidate ?? pass.outline.next.data[token * pass.outline.next.shape[1]];
  }

  show(pass, token) {
    if (this.lens.open) this.showLens(pass, token);
    if (this.who.open) this.showAttribution(pass, token);
    if (this.checks.open) this.showChecks(pass);
    this.circuits.show(pass);
  }

  /** Follow the selection above: an attention or null, and a head or null. */
  follow(attention, head) {
    this.circuits.follow(attention, head);
  }

  draw() {
    this.circuits.draw();
  }

  showLens(pass, token) {
    const { lens } = pass.outline;
    const key = `${pass.id} ${token} ${pass.hasLens(token)}`;
    if (this.lensShown === key) return;
    this.lensShown = key;
    const [depths, tokens] = lens.shape;
    const known = Array.from({ length: tokens }, (_, at) => at).filter((at) => pass.hasLens(at));
    const words = node("p", "note");
    const { where, asked, away, which } = predicting(pass);
    put(words, `What the model would predict ${where} if it ended after each layer: the darker, the more probable. Small: the rank of the token ${asked}`);
    const box = tableBox(null, TITLES.lens);
    const { table, body } = tableOf(["layer"]);
    box.append(table);
    for (const at of known) {
      const button = untranslated(node("button", "", heading(table.rows[0], "col")));
      button.dataset.token = String(at);
      put(button, pass.labels.text[at]);
      attribute(button, "aria-label", `Token ${at}: ${pass.labels.text[at]}`);
      attribute(button, "aria-pressed", String(at === token));
    }
    const [shares, right, rank] = ["lens.probability", "lens.right", "lens.rank"].map((name) => pass.outline[name].data);
    for (let depth = depths - 1; depth >= 0; depth--) {
      const row = node("tr", "", body);
      heading(row, "row", depth ? `after layer ${depth - 1}` : "embedding");
      for (const at of known) {
        const entry = depth * tokens + at;
        const cell = untranslated(node("td", "", row));
        cell.style.setProperty("--share", shares[entry].toFixed(3));
        if (at === token) cell.className = "selected";
        const label = pass.vocabulary[lens.data[entry]] ?? "?";
        put(node("b", "", cell), label);
        put(node("small", "", cell), rank[entry] ? `${rank[entry]}.` : "");
        cell.title = `“${label}” ${percent(shares[entry])}${rank[entry] ? `; “${pass.labels.text[at + away]}”, ${which}, ${percent(right[entry])}, rank ${rank[entry]}` : ""}`;
      }
    }
    this.lens.body.replaceChildren(words, box);
  }

  showAttribution(pass, token) {
    const chosen = this.chosenOf(pass, token);
    const attribution = pass.more[attributionOf(token, chosen)];
    const key = `${pass.id} ${token} ${chosen} ${Boolean(attribution)} ${pass.has("logits", pass.isByRow("logits") ? token : null)}`;
    if (this.attributionShown === key) return;
    this.attributionShown = key;
    const { data, shape } = pass.outline.next;
    const candidates = node("p", "candidates");
    candidates.append("The logit of ");
    const likeliest = data.subarray(token * shape[1], (token + 1) * shape[1]);
    for (const candidate of new Set([...likeliest, chosen])) {
      const button = node("button", "", candidates);
      button.dataset.candidate = String(candidate);
      attribute(button, "aria-pressed", String(candidate === chosen));
      put(button, `“${pass.vocabulary[candidate] ?? candidate}”`);
    }
    candidates.append(` ${predicting(pass).at} token ${token}, “${pass.labels.text[token]}”`);
    /** @type {HTMLElement[]} */
    const parts = [candidates];
    if (attribution) parts.push(...this.bars(pass, token, chosen, [...attribution.data]));
    else parts.push(Object.assign(node("p", "note"), { textContent: "The attribution is being computed." }));
    this.who.body.replaceChildren(...parts);
  }

  bars(pass, token, chosen, values) {
    const { names } = pass.partMetadata.attribution;
    const sum = sumOf(values);
    const limit = largestAbsolute(values) || 1;
    const words = node("p", "note");
    const norms = { none: "", pre: " The final norm divides by the number that it divided by in this pass." }[pass.config.norm] ?? " All later norms divide by the numbers that they divided by in this pass.";
    const head = pass.config.masked_word_head ? " The prediction head isn’t linear, so what it makes of all before it is one part." : "";
    put(words, `What each part adds to the logit, the largest first. Right: raises it. Left: lowers it.${norms}${head}`);
    const list = node("ul", "shares");
    const bySize = names.map((_, at) => at).sort((one, other) => Math.abs(values[other]) - Math.abs(values[one]));
    for (const at of bySize) {
      const name = names[at];
      const item = node("li", "", list);
      const button = node("button", "", item);
      button.dataset.open = name.replace(/\[\d+\]$/, "");
      button.title = name;
      put(button, this.partName(name));
      const bar = node("i", "", item);
      bar.style.setProperty("--from", String(50 + (50 * Math.min(0, values[at])) / limit));
      bar.style.setProperty("--wide", String((50 * Math.abs(values[at])) / limit));
      attribute(bar, "data-sign", values[at] < 0 ? "negative" : "positive");
      put(untranslated(node("span", "", item)), plainNumber(values[at]));
    }
    const total = node("p", "total");
    const logits = pass.has("logits", pass.isByRow("logits") ? token : null) ? pass.value("logits", [token, chosen]) : null;
    const isEqual = logits !== null && Math.abs(sum - logits) <= Math.max(EQUAL, pass.rounding * Math.sqrt(names.length)) * Math.max(1, limit);
    const isChanged = pass.changed.records.length > 0;
    const rest = isChanged ? ". What is changed in the pass makes up the rest" : "";
    put(total, `Sum ${plainNumber(sum, 6)}${logits === null ? "" : isEqual ? `, equal to the logit (difference ${plainNumber(Math.abs(sum - logits), 2)})` : `; the logit is ${plainNumber(logits, 6)}${rest}`}.`);
    attribute(total, "data-state", isEqual ? "equal" : isChanged ? "set" : "different");
    return [words, list, total];
  }

  /** The name of a term: a head, or the tensor that is added. */
  partName(name) {
    const [, tensor, head] = /^(.+?)(?:\[(\d+)\])?$/.exec(name);
    const location = this.structure.locations.get(tensor);
    return head === undefined ? fullName(tensor, location, this.structure.config) : `${sublayerName(location)}: head ${head}`;
  }

  showChecks(pass) {
    const { checks } = pass.partMetadata;
    if (this.checksShown === checks && checks) return;
    this.checksShown = checks;
    if (!checks) {
      this.checks.body.replaceChildren(Object.assign(node("p", "note"), { textContent: "The pass is being recomputed." }));
      return;
    }
    const followed = checks.filter(({ set_by: setBy }) => !setBy.length);
    const others = checks.length - followed.length;
    const worst = followed.reduce((most, other) => (shareOf(other) > shareOf(most) ? other : most));
    const words = node("p", "note");
    const which = others ? `${followed.length} of the ${checks.length}` : `All ${checks.length}`;
    const set = others ? ` In ${others === 1 ? "the other one" : `the other ${others}`} something was set by what is changed in the model.` : "";
    const nameOf = (name) => fullName(name, this.structure.locations.get(name), this.structure.config);
    put(words, `${which} tensors of this pass were recomputed from what they are made of.${set} Relative to the tensor's largest value, the largest deviation is ${plainNumber(shareOf(worst), 2)} (${nameOf(worst.name)}).`);
    const box = tableBox(null, TITLES.checks);
    const { table, body } = tableOf(["tensor", "made of", "largest deviation", "largest value"]);
    box.append(table);
    for (const { name, largest, magnitude, set_by: setBy } of checks) {
      const row = node("tr", "", body);
      const button = node("button", "", heading(row, "row"));
      button.dataset.open = name;
      button.title = name;
      putBoth(button, nameOf(name), name);
      put(untranslated(node("td", "", row)), pass.describe(name)?.formula ?? "");
      put(node("td", "", row), setBy.length ? `set by: ${setBy.join("; ")}` : largest === null ? "∞" : plainNumber(largest, 2));
      put(node("td", "", row), plainNumber(magnitude, 3));
    }
    this.checks.body.replaceChildren(words, box);
  }
}

function attributionOf(token, chosen) {
  return `attribution[${token}, ${chosen}]`;
}

function shareOf({ largest, magnitude }) {
  return (largest ?? Infinity) / (magnitude || 1);
}

/** @returns {Fold} */
function fold(parent, title, changed) {
  const made = node("details", "", parent);
  put(node("summary", "", made), title);
  const details = Object.assign(made, { body: node("div", "", made) });
  details.addEventListener("toggle", changed);
  return details;
}

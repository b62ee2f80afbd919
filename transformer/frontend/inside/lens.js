// Below the picture: the logit lens for every token, direct logit attribution, the circuits of a head, and whether the pass
// is what its equations say.

import { attribute, node, put, putBoth } from "../dom.js";
import { percent, plainNumber } from "../numbers.js";
import { Circuits } from "./circuits.js";
import { FOLDS } from "./selection.js";
import { fullName, sublayerName } from "./plain_names.js";
/** @import { Chosen } from "./selection.js" */
/** @import { Structure } from "./structure.js" */

/** @typedef {HTMLDetailsElement & { body: HTMLElement }} Fold */

const TITLES = { lens: "Logit lens by layer", who: "Direct logit attribution", circuits: "Circuits", checks: "Checks" };
const EQUAL = 1e-4; // of the sum: what a logit and its parts may differ by

export class Below {
  /** @type {Fold} */ lens;
  /** @type {Fold} */ who; // direct logit attribution, as links name it
  /** @type {Fold} */ checks;
  /** @type {Circuits} */ circuits;
  /** @type {number | null} */ candidate;
  /** @type {Structure} */ structure;

  /** events: open(name), token(token), choose(change): of what is looked at, { folds, candidate, circuit }. */
  constructor(parent, events) {
    // Of one that has just been unfolded, the browser tells a little later: what is chosen in it meanwhile tells it, too.
    const choose = (change) => events.choose({ folds: FOLDS.filter((name) => this.folds[name].open), ...change });
    this.events = { ...events, choose };
    /** @type {Record<string, Fold>} */
    this.folds = Object.fromEntries(Object.entries(TITLES).map(([name, title]) => [name, fold(parent, title, () => choose({}))]));
    Object.assign(this, this.folds, { circuits: new Circuits(this.folds.circuits, this.events) });
    parent.addEventListener("click", (event) => this.onClick(event));
  }

  /** A new pass. @param {Structure} structure of its model */
  begin(pass, structure) {
    this.structure = structure;
    this.circuits.begin(pass, structure);
  }

  /** What is looked at. @param {Chosen} chosen */
  turnTo({ folds, candidate, circuit }) {
    for (const name of FOLDS) {
      const isOpen = folds.includes(name);
      if (this.folds[name].open !== isOpen) this.folds[name].open = isOpen;
    }
    this.candidate = candidate;
    this.circuits.turnTo(circuit);
  }

  onClick(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const { open, token, candidate } = button.dataset;
    if (open !== undefined) this.events.open(open);
    if (token !== undefined) this.events.token(Number(token));
    if (candidate !== undefined) this.events.choose({ candidate: Number(candidate) });
  }

  /** The parts that what is unfolded shows. */
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

  /** What is looked at above: an attention, or null, and a head, or null; draw(): the page has another size or colours. */
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
    put(words, "What the model would predict next if it ended after each layer: the darker, the more probable. Small: the rank of the token that follows in the text.");
    const table = node("table", "");
    const head = node("tr", "", node("thead", "", table));
    put(cellOf(head, "th"), "layer");
    for (const at of known) {
      const button = node("button", "", cellOf(head, "th"));
      button.type = "button";
      button.dataset.token = String(at);
      put(button, pass.labels.text[at]);
      attribute(button, "aria-label", `Token ${at}: ${pass.labels.text[at]}`);
      attribute(button, "aria-pressed", String(at === token));
    }
    const body = node("tbody", "", table);
    const [shares, right, rank] = ["lens.probability", "lens.right", "lens.rank"].map((name) => pass.outline[name].data);
    for (let depth = depths - 1; depth >= 0; depth--) {
      const row = node("tr", "", body);
      put(cellOf(row, "th"), depth ? `after layer ${depth - 1}` : "embedding");
      for (const at of known) {
        const place = depth * tokens + at;
        const cell = cellOf(row, "td");
        cell.style.setProperty("--share", shares[place].toFixed(3));
        if (at === token) cell.className = "selected";
        const label = pass.vocabulary[lens.data[place]] ?? "?";
        put(node("b", "", cell), label);
        put(node("small", "", cell), rank[place] ? `${rank[place]}.` : "");
        cell.title = `“${label}” ${percent(shares[place])}${rank[place] ? `; “${pass.labels.text[at + 1]}”, which follows, ${percent(right[place])}, rank ${rank[place]}` : ""}`;
      }
    }
    const box = node("div", "table");
    box.tabIndex = 0;
    attribute(box, "role", "region");
    attribute(box, "aria-label", TITLES.lens);
    box.append(table);
    this.lens.body.replaceChildren(words, box);
  }

  showAttribution(pass, token) {
    const chosen = this.chosenOf(pass, token);
    const found = pass.more[attributionOf(token, chosen)];
    const key = `${pass.id} ${token} ${chosen} ${Boolean(found)} ${pass.has("logits", pass.isByRow("logits") ? token : null)}`;
    if (this.attributionShown === key) return;
    this.attributionShown = key;
    const { data, shape } = pass.outline.next;
    const candidates = node("p", "candidates");
    candidates.append("The logit of ");
    const likeliest = data.subarray(token * shape[1], (token + 1) * shape[1]);
    for (const candidate of new Set([...likeliest, chosen])) {
      const button = node("button", "", candidates);
      button.type = "button";
      button.dataset.candidate = String(candidate);
      attribute(button, "aria-pressed", String(candidate === chosen));
      put(button, `“${pass.vocabulary[candidate] ?? candidate}”`);
    }
    candidates.append(` after token ${token}, “${pass.labels.text[token]}”`);
    /** @type {HTMLElement[]} */
    const parts = [candidates];
    if (found) parts.push(...this.bars(pass, token, chosen, [...found.data]));
    else parts.push(Object.assign(node("p", "note"), { textContent: "The attribution is being computed." }));
    this.who.body.replaceChildren(...parts);
  }

  bars(pass, token, chosen, values) {
    const { names } = pass.partMetadata.attribution;
    const sum = values.reduce((total, value) => total + value, 0);
    const limit = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    const words = node("p", "note");
    const norms = { pre: " The final norm’s divisor is kept as it was in this pass.", post: " The divisors of all later norms are kept as they were in this pass." }[pass.config.norm] ?? "";
    put(words, `What each part adds to the logit. Right: raises it. Left: lowers it.${norms}`);
    const list = node("ul", "shares");
    names.forEach((name, at) => {
      const item = node("li", "", list);
      const button = node("button", "", item);
      button.type = "button";
      button.dataset.open = name.replace(/\[\d+\]$/, "");
      button.title = name;
      put(button, this.partName(name));
      const bar = node("i", "", item);
      bar.style.setProperty("--from", String(50 + (50 * Math.min(0, values[at])) / limit));
      bar.style.setProperty("--wide", String((50 * Math.abs(values[at])) / limit));
      attribute(bar, "data-sign", values[at] < 0 ? "negative" : "positive");
      put(node("span", "", item), plainNumber(values[at]));
    });
    const total = node("p", "total");
    const logits = pass.has("logits", pass.isByRow("logits") ? token : null) ? pass.value("logits", [token, chosen]) : null;
    const isEqual = logits !== null && Math.abs(sum - logits) <= EQUAL * Math.max(1, limit);
    const isChanged = pass.changed.records.length > 0;
    const rest = isChanged ? ". What is changed in the pass makes up the rest" : "";
    put(total, `Sum ${plainNumber(sum, 6)}${logits === null ? "" : isEqual ? `, equal to the logit (difference ${plainNumber(Math.abs(sum - logits), 2)})` : `; the logit is ${plainNumber(logits, 6)}${rest}`}.`);
    attribute(total, "data-state", isEqual ? "equal" : isChanged ? "set" : "different");
    return [words, list, total];
  }

  /** What a part of the sum is called: a head, or the tensor that is added. */
  partName(name) {
    const [, tensor, head] = /^(.+?)(?:\[(\d+)\])?$/.exec(name);
    const place = this.structure.places.get(tensor);
    return head === undefined ? fullName(tensor, place, this.structure.norm) : `${sublayerName(place)}: head ${head}`;
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
    const worst = followed.reduce((most, each) => (shareOf(each) > shareOf(most) ? each : most));
    const words = node("p", "note");
    const which = others ? `${followed.length} of the ${checks.length}` : `All ${checks.length}`;
    const set = others ? ` In ${others === 1 ? "the other one" : `the other ${others}`} something was set by what is changed in the model.` : "";
    const nameOf = (name) => fullName(name, this.structure.places.get(name), this.structure.norm);
    put(words, `${which} tensors of this pass were recomputed from what they are made of.${set} Relative to the tensor's largest value, the largest deviation is ${plainNumber(shareOf(worst), 2)} (${nameOf(worst.name)}).`);
    const table = node("table", "");
    const head = node("tr", "", node("thead", "", table));
    for (const title of ["tensor", "made of", "largest deviation", "largest value"]) put(cellOf(head, "th"), title);
    const body = node("tbody", "", table);
    for (const { name, largest, magnitude, set_by: setBy } of checks) {
      const row = node("tr", "", body);
      const button = node("button", "", cellOf(row, "th"));
      button.type = "button";
      button.dataset.open = name;
      button.title = name;
      putBoth(button, nameOf(name), name);
      put(cellOf(row, "td"), pass.describe(name)?.formula ?? "");
      put(cellOf(row, "td"), setBy.length ? `set by: ${setBy.join("; ")}` : largest === null ? "∞" : plainNumber(largest, 2));
      put(cellOf(row, "td"), plainNumber(magnitude, 3));
    }
    const box = node("div", "table");
    box.tabIndex = 0;
    attribute(box, "role", "region");
    attribute(box, "aria-label", TITLES.checks);
    box.append(table);
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

function cellOf(row, tag) {
  return node(tag, "", row);
}

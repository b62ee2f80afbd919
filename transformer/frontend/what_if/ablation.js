// Shows what each part of a model does, and what it predicts and writes with its changes and without them.

import { changedSentence } from "../changes.js";
import { button, list, node, partsOf, put } from "../dom.js";
import { surestOf } from "../filling/masked_text.js";
import { partInWords } from "../intervention_codes.js";
import { counted, percent, plainNumber } from "../number_format.js";
import { AblationMap, codeOfPart } from "./ablation_map.js";
import { showBars } from "./bars.js";
import { divergence, inOrder, movedMost, sharedLength } from "./distributions.js";
import { PythonDrawer, TableDrawer } from "./drawers.js";
import { NoLayers } from "./no_layers.js";
import { linesOfAblation } from "./python_lines.js";
import { showTexts } from "./text_comparison.js";
/** @import { Side } from "./data.js" */
/** @import { WhatIfView } from "./view.js" */

/**
 * @typedef {object} AblationAbout
 * @property {Side} side
 * @property {number[]} before the text up to the position; of an encoder all of it
 * @property {{ start: string, more: number[] }} text the same as it is shown: characters, and tokens after them
 * @property {boolean} isCausal
 * @property {boolean} hasParts
 * @property {{ name: string, title: string } | null} able of a model without parts, one that has attention
 * @property {string | null} whose text it is, where nobody typed it
 * @property {number | null} room for tokens, after a source
 * @property {number | null} mask the token that an encoder fills
 * @property {{ code: string, words: string }[]} interventions
 * @property {{ temperature: number, top_k: number | null, top_p: number | null, seed: number }} sampling
 * @property {string} file
 */

const CANDIDATES = 5; // tokens of each distribution that have bars
const MOST_NAMED = 5; // tokens named among those that gained most, and that lost most
const SUGGESTED = 3;
export const LENGTH = 60; // tokens that each of the two models writes
const LONGEST = 120; // characters shown of what stands before them
const NOTICEABLE = 0.01; // a divergence, in nats, of less isn't far
const MARKUP = `
  <div class="what-if-columns" data-part="columns">
    <section data-part="map"></section>
    <section>
      <h2 data-part="heading"></h2>
      <p class="faint" data-part="where"></p>
      <div data-part="bars"></div>
      <ul class="what-if-suggestions" data-part="suggestions" hidden></ul>
      <p class="faint" data-part="slight"></p>
      <div data-part="changed"></div>
    </section>
  </div>
  <section data-part="written">
    <h2 data-part="title"></h2>
    <div class="text-comparison" data-part="texts" data-testid="text-comparison"></div>
    <p class="faint" data-part="differ"></p>
  </section>
  <div data-part="none"></div>
  <div data-part="drawers"></div>`;

export class Ablation {
  /** @type {AblationAbout} */ about;

  /** @param {HTMLElement} root @param {WhatIfView} page */
  constructor(root, page) {
    this.page = page;
    root.innerHTML = MARKUP; // constant
    this.parts = partsOf(root);
    const { drawers, none } = this.parts;
    this.table = new TableDrawer(drawers, "Both distributions as a table");
    this.map = new AblationMap(this.parts.map, drawers, page, (ablated) => this.showAblated(ablated));
    this.python = new PythonDrawer(drawers);
    this.noLayers = new NoLayers(none, (name) => page.host.choose({ model: name }));
  }

  /** @param {AblationAbout} about */
  async show(about) {
    this.about = about;
    const { parts, page } = this;
    const { side, hasParts, isCausal, interventions } = about;
    const isBare = !hasParts && !interventions.length;
    parts.map.hidden = !hasParts;
    parts.columns.hidden = parts.drawers.hidden = isBare;
    parts.written.hidden = !interventions.length;
    this.noLayers.show({ ...about, hasParts: !isBare });
    if (isBare) return;
    const names = (this.names = await page.namesOf(side));
    const unchanged = { ...side, changes: null };
    const first = page.distribution(unchanged);
    const logs = await Promise.all([first, interventions.length ? page.distribution(side) : first]);
    this.showNext(logs);
    this.python.show(linesOfAblation(about, page.modelOf(side), null));
    if (hasParts) this.map.show(about, names, logs);
    if (!interventions.length) return;
    if (isCausal) page.host.fetch(() => this.write([unchanged, side]), (texts) => this.showWritten(texts));
    else page.host.fetch(() => this.fill([unchanged, side]), (texts) => this.showFilled(texts));
  }

  setSelection() {
    if (this.about?.hasParts && this.map.likely) this.map.ask();
  }

  draw() {
    if (this.map.ablated) this.map.draw();
  }

  /** The last token before the one that is predicted, or of an encoder that one. */
  get where() {
    const { side: { tokens, begin, position }, isCausal } = this.about;
    const label = `“${this.names[tokens[position]]}”`;
    return isCausal ? `after ${label} at position ${begin + position}` : `at ${label}, position ${position}`;
  }

  /** @param {[Float64Array, Float64Array]} logs */
  showNext(logs) {
    const { parts, names, about: { isCausal, interventions, file } } = this;
    const isChanged = interventions.length > 0;
    put(parts.heading, isCausal ? "Next token" : "Predicted token");
    const where = `${this.where[0].toUpperCase()}${this.where.slice(1)}.`;
    put(parts.where, isChanged ? `${where} KL divergence ${plainNumber(divergence(...logs), 3)} nats: how far the changes move it.` : where);
    const [old, now] = logs;
    const shown = [...new Set(logs.flatMap((log) => inOrder(log, CANDIDATES)))].sort((one, other) => old[other] - old[one] || one - other);
    const sides = isChanged ? [old, now] : [old];
    showBars(parts.bars, { first: "token", labels: shown.map((id) => names[id]), names: isChanged ? ["unchanged", "changed"] : ["probability"], values: sides.map((log) => shown.map((id) => Math.exp(log[id]))), says: percent });
    this.showChanged(isChanged ? logs : null);
    this.table.offer(`${file}-before-and-after.csv`, () => ({
      columns: ["token id", "token", "probability unchanged", "probability changed", "ln unchanged", "ln changed"],
      rows: inOrder(old, names.length).map((id) => [id, names[id], Math.exp(old[id]), Math.exp(now[id]), old[id], now[id]]),
    }));
  }

  /** What gained most and what lost most. @param {[Float64Array, Float64Array] | null} logs null where nothing is changed */
  showChanged(logs) {
    const { parts: { changed }, names, about: { interventions } } = this;
    changed.replaceChildren();
    if (!logs) return;
    put(node("p", "faint", changed), changedSentence(interventions.map(({ code }) => code)));
    const [fallen, risen] = /** @type {const} */ ([-1, 1]).map((sign) => movedMost(logs, sign, MOST_NAMED));
    if (!fallen.length && !risen.length) {
      put(node("p", "", changed), `These changes move no probability ${this.where}.`);
      return;
    }
    put(node("p", "", changed), "What changed most:");
    const items = node("ul", "", changed);
    for (const [words, ids] of /** @type {const} */ ([["Less likely", fallen], ["Likelier", risen]])) {
      const named = ids.map((id) => [id, ...logs.map((log) => percent(Math.exp(log[id])))]).filter(([, old, now]) => old !== now);
      put(node("li", "", items), `${words}: ${named.map(([id, old, now]) => `“${names[id]}” ${old} → ${now}`).join(", ") || "none"}`);
    }
  }

  /** The map is there: the parts that move the next token most when they are ablated, one press each. @param {import("./ablation_map.js").Ablated} ablated */
  showAblated(ablated) {
    const { parts: { suggestions, slight }, about, names } = this;
    this.python.show(linesOfAblation(about, this.page.modelOf(about.side), { effect: this.map.effect, token: ablated.token }));
    const isOffered = !about.interventions.length;
    suggestions.hidden = !isOffered;
    put(slight, isOffered && Math.max(...ablated.divergence) < NOTICEABLE ? "No single part has a large effect. Ablate several together." : "");
    if (!isOffered) return;
    const most = inOrder(ablated.divergence, SUGGESTED).map((at) => ({ part: ablated.parts[at], words: `“${names[ablated.token]}”: ${percent(ablated.with[at])} → ${percent(ablated.without[at])}` }));
    list(suggestions, most, ({ part, words }) => {
      const item = node("li", "", null);
      button(item, `Ablate ${partInWords(part)}`, () => this.page.host.change({ add: [codeOfPart(part)], remove: [] }), { className: "act" });
      put(node("span", "", item), words);
      return item;
    });
  }

  /** What both models write. @param {Side[]} sides @returns {Promise<{ id: number, piece: string }[][]>} */
  async write(sides) {
    const { about: { before, text, room, sampling }, page } = this;
    const texts = [];
    for (const side of sides) {
      const written = [];
      const api = page.api({ ...side, tokens: before, begin: 0 });
      for await (const { event, data } of api.stream("generate", { ...sampling, max_new_tokens: Math.max(Math.min(LENGTH, room ?? LENGTH), 1) })) {
        const isFirst = !text.start && !text.more.length && !written.length;
        if (event === "token") written.push({ id: data.id, piece: data.kinds?.[data.id]?.[isFirst ? 2 : 1] ?? page.pieceOf(side, data.id, isFirst) });
      }
      texts.push(written);
    }
    return texts;
  }

  /** @param {{ id: number, piece: string }[][]} texts */
  showWritten(texts) {
    const { parts, page, about: { side, text, sampling, room } } = this;
    const ends = page.modelOf(side).about.card.stop_tokens;
    const same = sharedLength(texts.map((written) => written.map(({ id }) => id)));
    put(parts.title, "Generated text");
    const before = text.start + text.more.map((id, at) => page.pieceOf(side, id, !text.start && !at)).join("");
    showTexts(parts.texts, texts.map((written, at) => {
      const isEnded = ends.includes(written.at(-1)?.id);
      return versionOf(["Unchanged", "Changed"][at], before, (isEnded ? written.slice(0, -1) : written).map(({ piece }) => piece), same, isEnded);
    }));
    const isSame = same === Math.max(...texts.map(({ length }) => length));
    const differ = isSame ? "Both write the same." : same ? `They differ after ${counted(same, "token")}.` : "They differ from the first token on.";
    const how = sampling.temperature === 0 ? "always the likeliest token" : `temperature ${sampling.temperature}, seed ${sampling.seed}: the same random numbers for both`;
    put(parts.differ, `${differ} Up to ${LENGTH} tokens${room === null ? "" : " to the end of the text"}, with ${how}.`);
  }

  /** The text with its masks filled by both models, the surest first; null for a text without masks. @param {Side[]} sides @returns {Promise<number[][] | null>} */
  async fill(sides) {
    const { about: { mask }, page } = this;
    if (!sides[0].tokens.includes(mask)) return null;
    const texts = [];
    for (const side of sides) {
      const text = [...side.tokens];
      while (text.includes(mask)) {
        const { masks } = await page.api({ ...side, tokens: text }).json("masked");
        const { position, candidates } = surestOf(masks);
        text[position] = candidates[0].id;
      }
      texts.push(text);
    }
    return texts;
  }

  /** @param {number[][] | null} texts */
  showFilled(texts) {
    const { parts, page, names, about: { side, mask } } = this;
    put(parts.title, "Masks filled");
    parts.texts.hidden = !texts;
    if (!texts) {
      put(parts.differ, "This encoder writes no text: it fills masks, and the prompt has none.");
      return;
    }
    const masks = side.tokens.flatMap((id, at) => (id === mask ? [at] : []));
    const differing = masks.filter((at) => texts[0][at] !== texts[1][at]);
    const same = (differing[0] ?? side.tokens.length) - masks[0];
    showTexts(parts.texts, texts.map((text, at) => {
      const pieces = text.map((id, place) => page.pieceOf(side, id, !place));
      return versionOf(["Unchanged", "Changed"][at], pieces.slice(0, masks[0]).join(""), pieces.slice(masks[0]), same);
    }));
    const differ = differing.length ? `They differ at ${differing.length} of ${counted(masks.length, "mask")}.` : `Both fill in ${masks.map((at) => `“${names[texts[0][at]]}”`).join(", ")}.`;
    put(parts.differ, `${differ}${masks.length > 1 ? " The surest mask is filled first, and the others knowing it." : ""} Always the likeliest token.`);
  }
}

/** What one of the models writes or fills in after a text. same: how many pieces the other has, too. */
function versionOf(title, before, pieces, same, ends = false) {
  const [shared, differs, rest] = [pieces.slice(0, same), pieces.slice(same, same + 1), pieces.slice(same + 1)].map((part) => part.join(""));
  return { title, before: before.length <= LONGEST ? before : `…${before.slice(-LONGEST)}`, same: shared, differs, rest, ends };
}

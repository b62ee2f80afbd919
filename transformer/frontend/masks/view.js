// Shows the masks of a text, and what the model predicts under its own mask and under another: the view of the page Masks.

import { node, partsOf, put } from "../dom.js";
import { pageState } from "../page/page_state.js";
import { TableDrawer } from "../table_drawer.js";
import { distributionsOf } from "../what_if/distributions.js";
import { Masks } from "./masks.js";
import { causalPanel, encoderPanels, openPanel, paddingPanel, tableOfMasks } from "./panels.js";
import { tableOfPredictions, underCausalMask, withoutMask } from "./readings.js";
/** @import { Api, Parameters } from "../api.js" */
/** @import { ViewFrame } from "../page/view_frame.js" */
/** @import { Panel } from "./panels.js" */
/** @import { Predictions, Readings } from "./readings.js" */

/**
 * @typedef {object} MasksAbout
 * @property {boolean} isEncoder whether the model is encoder-only
 * @property {boolean} isTranslator whether its text is what a decoder reads beside a source
 * @property {Parameters} other the pass under another mask
 * @property {number[]} windows by layer: how many tokens a query sees, 0 for all
 * @property {number[]} tokens that the model reads
 * @property {number[]} next the token that came after each; the last may be missing
 * @property {string[]} labels
 * @property {number} offset the first token's position in the text
 * @property {number} shown tokens of the masks
 * @property {number | null} most that can be; null where all are
 * @property {number} first token that is
 * @property {number} row the one of them that an encoder is asked about
 * @property {number | null} mask the mask's token
 * @property {number} context
 * @property {number} outside tokens of the text that the context has no room for
 * @property {string[]} before labels of the last of these
 * @property {number} pad the padding token, or the id after the vocabulary
 * @property {{ ids: number[], labels: string[], offset: number }} padded the text that padding is put after
 * @property {string} title of files
 */

const FILLER = 3; // padding tokens of a state that says nothing else
const MARKUP = `
  <div data-part="picture"></div>
  <label class="view-dial" data-part="dial"><span data-part="dialName"></span> <input type="range" min="8" data-part="count"> <output data-part="counted"></output></label>
  <div data-part="tables"></div>
  <details class="view-part" data-part="others">
    <summary data-part="othersName"></summary>
    <label class="view-dial">Padding tokens after the prompt <input type="range" min="0" max="8" data-part="filler"> <output data-part="filled"></output></label>
    <div data-part="otherMasks"></div>
  </details>`;

export class MasksView {
  /** @type {MasksAbout} */ about;
  /** @type {Api | undefined} */ otherApi;

  /** @param {HTMLElement} root @param {ViewFrame} host */
  constructor(root, host) {
    this.host = host;
    root.innerHTML = MARKUP; // constant
    const parts = (this.parts = partsOf(root));
    this.masks = new Masks({ root: node("div", "", parts.picture) });
    this.tables = { masks: new TableDrawer(parts.tables, "This mask as a table"), predictions: new TableDrawer(parts.tables, "These predictions as a table") };
    this.otherMasks = new Masks({ root: node("div", "", parts.otherMasks) });
    this.otherTable = new TableDrawer(parts.others, "These masks as a table");
    parts.others.open = pageState().get("filler") !== null;
    parts.others.addEventListener("toggle", () => this.showOthers());
    parts.count.addEventListener("input", () => put(parts.counted, parts.count.value));
    parts.count.addEventListener("change", () => host.select({ masks_shown: parts.count.value }));
    parts.filler.addEventListener("input", () => {
      host.select({ filler: parts.filler.value });
      this.showOthers();
    });
  }

  /** @param {Api} api @param {Record<string, any>} given `MasksAbout` */
  async begin(api, given) {
    const about = /** @type {MasksAbout} */ (given);
    const { parts, tables } = this;
    this.otherApi?.end();
    this.otherApi = this.host.apiOf(about.other, { computed: () => {} });
    const readings = about.windows.length ? await readingsOf([api, this.otherApi], about) : null;
    this.about = about;
    const { isEncoder, windows, shown, most, title } = about;
    parts.picture.hidden = parts.tables.hidden = isEncoder && !windows.length;
    const { panels, predictions } = pictureOf(about, readings);
    if (!parts.picture.hidden) this.masks.update({ panels, predictions });
    parts.dial.hidden = most === null;
    put(parts.dialName, isEncoder ? "Tokens shown, around the mask" : "Tokens shown, from the end");
    Object.assign(parts.count, { max: String(most ?? shown), value: String(shown) });
    put(parts.counted, String(shown));
    put(tables.masks.title, isEncoder ? "These masks as a table" : "This mask as a table");
    tables.masks.show(() => tableOfMasks(panels), `${title}-${isEncoder ? "masks-of-attention" : "causal-mask"}`);
    tables.predictions.root.hidden = !readings;
    if (readings) tables.predictions.show(() => tableOfPredictions(readings, { ...panels[0], isEncoder }), `${title}-candidates-${isEncoder ? "causal" : "without"}-mask`);
    put(parts.othersName, isEncoder ? "Padding mask" : "Padding mask, and no mask");
    this.showOthers();
  }

  setSelection() {
    if (this.about) this.showOthers();
  }

  draw() {
    if (this.masks.panels) this.masks.draw();
    if (this.otherMasks.panels) this.otherMasks.draw();
  }

  /** The masks that stand below, drawn while they are unfolded. */
  showOthers() {
    const { parts, about } = this;
    const filler = Math.min(pageState().number("filler") ?? FILLER, 8);
    parts.filler.value = String(filler);
    put(parts.filled, String(filler));
    if (!about || !parts.others.open) return;
    const panels = otherPanels(about, filler);
    this.otherMasks.update({ panels, predictions: null });
    this.otherTable.show(() => tableOfMasks(panels), `${about.title}-masks`);
  }
}

/**
 * What the model predicts in both ways.
 *
 * @param {Api[]} apis
 * @param {MasksAbout} about
 * @returns {Promise<Readings>}
 */
export async function readingsOf(apis, { isEncoder, tokens, next, first, shown, mask }) {
  const both = await Promise.all(apis.map((api) => api.recording("predictions", { first, last: first + shown - 1 })));
  const kinds = Object.assign({}, ...both.map(({ metadata }) => metadata.kinds));
  const [own, other] = both.map(distributionsOf);
  const there = isEncoder ? tokens.map((id) => (id === mask ? null : id)) : tokens.map((_, at) => next[at] ?? null);
  return { own, other, right: there.slice(first, first + shown), label: (id) => kinds[id]?.[0] ?? `#${id}` };
}

/** The masks of the text, and what is predicted under them. @param {MasksAbout} about @param {Readings | null} readings @returns {{ panels: Panel[], predictions: Predictions | null }} */
export function pictureOf(about, readings) {
  const { isEncoder, labels, offset, first, shown } = about;
  const tokens = { labels: labels.slice(first, first + shown), offset: offset + first };
  const whole = { ...about, length: labels.length };
  const panels = isEncoder ? encoderPanels(tokens, whole) : [causalPanel(tokens, whole)];
  return { panels, predictions: readings && (isEncoder ? underCausalMask(readings, about) : withoutMask(readings, whole)) };
}

/** The masks of the text with padding after it. @param {MasksAbout} about @param {number} filler padding tokens @returns {Panel[]} */
export function otherPanels({ isEncoder, isTranslator, padded, pad }, filler) {
  return [paddingPanel(padded, pad, filler), ...(isEncoder ? [] : [openPanel(padded, isTranslator)])];
}

// The instrument of the page Attention: the weights of one head, one token's attention over the text, an overview of
// all heads and, on request, the four steps to the weights and one cell by hand. It holds the selection, tells its host of
// it, and asks the host for parts of the pass alone.

import { attribute, button, offer, partsOf, put } from "../dom.js";
import { HeadOverview } from "../head_overview.js";
import { typeSize } from "../axis_labels.js";
import { parsed } from "../intervention_codes.js";
import { InterventionControls } from "../intervention_controls.js";
import { Tooltip } from "../tooltip.js";
import { CellSteps } from "./cell_steps.js";
import { changedHeads, interventionsAt, isHiddenIn } from "./available_interventions.js";
import { Fetcher } from "./fetcher.js";
import { MARKUP } from "./markup.js";
import { HeadMeasures, ranked } from "./head_measures.js";
import { DIRECTIONS, TokenView } from "./token_view.js";
import { Panels, STAGES } from "./panels.js";
import { Pass } from "./pass.js";
import { saveNumbers, savePicture } from "./export.js";
import { cellInWords, seenInWords } from "./attention_description.js";
import { closer, farther, fitted, following, zoomByKey } from "./zoom.js";
/** @import { Wish } from "../changes.js" */
/** @import { Cell } from "../heatmap.js" */
/** @import { Recording } from "../recording.js" */
/** @import { Wanted } from "./fetcher.js" */
/** @import { Chosen, Stage } from "./view_params.js" */
/** @import { Steps } from "./pass.js" */

/**
 * Where the instrument stands. It hears of the selection, fetches parts of the pass and, where it can, changes the model, and shows a
 * query and a key in the whole pass on another page.
 *
 * @typedef {object} Host
 * @property {(chosen: Chosen) => void} select
 * @property {(parts: Wanted[]) => void} want
 * @property {(wish: Wish) => void} [change]
 * @property {(cell: { query: number, key: number }) => void} [navigate]
 */

const LATE_MS = 100; // after which a preview is drawn until a head's numbers arrive

/** @type {Chosen} */
const BEGIN = {
  layer: 0, head: 0, query: null, key: null, stage: "weights", zoom: null, without: [], order: "", direction: "from", derivation: false,
};

export class AttentionInstrument {
  /** @type {Pass} */ pass;
  /** @type {Steps | null} */ steps;
  /** @type {Cell} */ cell; // the selected one
  /** @type {Cell | null} */ pointed;

  /**
   * @param {HTMLElement} parent
   * @param {Host} host
   */
  constructor(parent, host) {
    parent.innerHTML = MARKUP; // constant
    this.parts = partsOf(parent);
    this.host = host;
    this.chosen = { ...BEGIN };
    this.tip = new Tooltip(this.parts.tip);
    const { root } = this.parts;
    this.fetcher = new Fetcher((parts) => host.want(parts), (isDone) => attribute(root, "data-fetched", String(isDone)));
    this.overview = new HeadOverview(this.parts.heads, (layer, head) => this.choose({ layer, head }), (layer, head) => this.fetcher.hint(layer, head));
    this.changing = new InterventionControls(this.parts.change, this.parts.changing, host.change && ((change) => {
      // A weight that was set is selected, even if another one is the heaviest.
      const weight = (change.add ?? []).map(parsed).filter(({ kind }) => kind === "weigh").at(-1);
      if (weight) this.host.select({ ...this.chosen, query: this.cell.row, key: weight.values.key - this.pass.offsets.keys });
      host.change(change);
    }));
    if (host.change) this.overview.offerMenu(() => this.changing.open());
    this.changing.onToggle = () => this.pass && this.show();
    this.panels = new Panels(root, {
      carry: {
        canTake: ({ row, column }) => this.canCarry && !this.panels.isCrowded && this.steps.weights[row * this.pass.keys + column] > 0,
        canPut: ({ row, column }) => !isHiddenIn(this.steps, row * this.pass.keys + column),
        // Select its row, as the drawer changes what is selected.
        take: ({ row, column }) => this.choose({ query: row, key: column }),
        put: (from, to) => this.changing.moveWeight(from.column, to.column),
      },
      point: (cell) => this.point(this.isPooled ? null : cell),
      select: ({ row, column }) => !this.isPooled && this.choose({ query: row, key: column }),
      zoom: (window) => !this.isPooled && this.choose({ zoom: window }),
      stage: (stage) => this.choose({ stage }),
    });
    this.measures = new HeadMeasures(this.parts);
    this.text = new TokenView(this.parts.texts, this.tip, {
      choose: (change) => this.choose(change),
      point: (cell) => this.point(this.isPooled ? null : cell),
    });
    this.hand = new CellSteps(this.parts.hand, this.tip, (change) => this.choose(change), host.navigate && (() => this.navigate()));
    this.makeControls();
    let drawnAt = "";
    const sizes = [root, root.querySelector(".one"), this.parts.texts];
    const observer = new ResizeObserver(() => {
      const now = [typeSize(), ...sizes.map((element) => element.clientWidth)].join();
      if (now === drawnAt) return; // only a height has changed, as words in it do
      drawnAt = now;
      this.draw();
    });
    for (const element of sizes) observer.observe(element);
  }

  makeControls() {
    const { parts } = this;
    offer(parts.direction, Object.entries(DIRECTIONS));
    parts.direction.addEventListener("change", () => this.choose({ direction: parts.direction.value }));
    parts.sort.addEventListener("change", () => this.choose({ order: parts.sort.value }));
    for (const [stage, { title }] of /** @type {[Stage, { title: string }][]} */ (Object.entries(STAGES))) {
      button(parts.stages, title, () => this.choose({ stage })).dataset.stage = stage;
    }
    for (const checkbox of parts.root.querySelectorAll("[data-without]")) {
      const rule = checkbox.dataset.without;
      checkbox.addEventListener("change", () => {
        const others = this.chosen.without.filter((other) => other !== rule);
        this.choose({ without: checkbox.checked ? [...others, rule].sort() : others });
      });
    }
    parts.closer.addEventListener("click", () => this.zoom(closer));
    parts.farther.addEventListener("click", () => this.zoom(farther));
    parts.whole.addEventListener("click", () => this.choose({ zoom: null }));
    parts.derive.addEventListener("click", () => {
      this.choose({ derivation: !this.chosen.derivation });
      if (this.chosen.derivation) parts.derivation.scrollIntoView({ block: "start" });
    });
    parts.root.addEventListener("keydown", (event) => {
      if (event.target.closest("[data-panel]")) zoomByKey(event, (change) => this.zoom(change));
    });
    parts.root.addEventListener("keydown", (event) => event.key === "Escape" && this.tip.hide());
    parts.png.addEventListener("click", () => savePicture(this));
    parts.csv.addEventListener("click", () => saveNumbers(this));
  }

  /**
   * Show a new pass.
   *
   * @param {Recording} recording
   * @param {Partial<Chosen>} chosen what is looked at first
   */
  begin(recording, chosen) {
    this.pass = new Pass(recording);
    this.fetcher.begin(this.pass);
    this.chosen = { ...BEGIN, ...chosen };
    const { pass, parts } = this;
    const [layers, heads, queries, keys] = pass.cells.shape;
    this.overview.show({ layers: Array.from({ length: layers }, (_, layer) => layer), heads, queries, keys, cells: pass.cells.data });
    put(parts.pooled, queries < pass.queries || keys < pass.keys
      ? `Each small picture has ${queries} × ${keys} cells for ${pass.queries} × ${pass.keys} weights: the largest of its neighbours is shown.` : "");
    offer(parts.sort, [["", "Layer and head"], ...pass.orders.map(({ name, title }) => [name, title])]);
    this.overview.tell(changedHeads(pass));
    this.order = null; // the last pass's order of heads says nothing of this one's
    this.text.begin(pass);
    this.hand.begin(pass);
    parts.root.dataset.kind = pass.kind;
    this.pointed = null;
    this.show();
  }

  /** Parts that were asked for. @param {Recording} recording */
  add(recording) {
    const before = this.known;
    this.pass.add(recording);
    this.fetcher.arrived();
    if (this.known !== before) this.show(); // otherwise it was fetched ahead
  }

  /** How much of the selection has arrived. */
  get known() {
    const { pass, cell } = this;
    const { layer, head } = this.chosen;
    return [pass.has(layer, head), pass.hasRow(layer, head, cell.row)].join();
  }

  /** What somebody else has decided to look at, for example a link. @param {Partial<Chosen>} chosen */
  setSelection(chosen) {
    this.chosen = { ...this.chosen, ...chosen };
    if (this.pass) this.show();
  }

  /** Whether a cell on screen stands for several, as in the preview of a long text. */
  get isPooled() {
    return !this.steps && this.pass.cells.shape[2] < this.pass.queries;
  }

  /** Whether a drag in the last picture carries a weight: while the drawer is open and the picture is the model's own. */
  get canCarry() {
    return this.changing.isOpen && Boolean(this.steps) && !this.without.length && !this.isPooled;
  }

  /** @param {Partial<Chosen>} change */
  choose(change) {
    const entries = Object.entries(change);
    if (entries.every(([name, value]) => JSON.stringify(this.chosen[name]) === JSON.stringify(value))) return;
    this.chosen = { ...this.chosen, ...change };
    // Selecting a cell brings it into view; a zoom that was chosen stays.
    if (("query" in change || "key" in change) && this.chosen.zoom) {
      const { layer, head, zoom } = this.chosen;
      this.chosen.zoom = following(zoom, this.findCell(this.pass.steps(layer, head)));
    }
    const { layer, head } = this.chosen;
    if (this.pass.has(layer, head)) this.show();
    else { // drawing the preview would only delay the numbers
      this.fetcher.look({ layer, head, row: this.cell.row });
      this.overview.select(layer, head);
      clearTimeout(this.late);
      this.late = setTimeout(() => this.show(), LATE_MS);
    }
    this.host.select(this.chosen);
  }

  /** Open the cell in the whole pass. */
  navigate() {
    const { row: query, column: key } = this.cell;
    this.host.navigate({ query, key });
  }

  zoom(change) {
    this.choose({ zoom: change(this.chosen.zoom, this.cell, this.pass) });
  }

  /** The selected cell; by default the query that the pass is given for, and its heaviest key. @returns {Cell} */
  findCell(steps) {
    const { pass, chosen } = this;
    const row = chosen.query !== null && chosen.query < pass.queries ? chosen.query : pass.predictedPosition;
    if (chosen.key !== null && chosen.key < pass.keys) return { row, column: chosen.key };
    const weights = steps?.weights ?? new Float64Array(0);
    let column = 0;
    for (let key = 1; key < pass.keys; key++) if (weights[row * pass.keys + key] > weights[row * pass.keys + column]) column = key;
    return { row, column };
  }

  show() {
    clearTimeout(this.late);
    const { pass, parts } = this;
    const chosen = (this.chosen = fitted(this.chosen, pass));
    const { layer, head } = chosen;
    const done = pass.left(layer); // rules that the model itself went without
    const without = (this.without = chosen.without.filter((rule) => !done.includes(rule)));
    const steps = (this.steps = pass.steps(layer, head, without));
    const model = pass.steps(layer, head);
    const cell = (this.cell = this.findCell(model));
    this.fetcher.look({ layer, head, row: cell.row }); // requested first, so that it arrives while this is drawn
    const window = (this.window = chosen.zoom);
    this.showControls();
    this.panels.show(pass, { layer, steps, outline: steps ? null : pass.outline(layer, head), without, window, canCarry: this.canCarry, isOpen: chosen.derivation });
    this.note();
    this.showOver(model);
    this.point(this.pointed);
    if (chosen.derivation) this.hand.show(pass, { layer, head, ...cell }, steps, without);
    this.overview.select(layer, head);
    this.changing.show(interventionsAt(pass, chosen, cell, model));
    this.arrange();
    attribute(parts.root, "data-shown", `${layer}.${head}.${cell.row}.${cell.column}`);
    attribute(parts.root, "data-whole", String(Boolean(steps)));
  }

  showControls() {
    const { parts, chosen, pass } = this;
    const { layer, head } = chosen;
    const { without } = this;
    put(parts.where, `Layer ${layer}, head ${head}`);
    this.measures.show(pass.measures(layer, head));
    const stage = pass.stages.includes(chosen.stage) ? chosen.stage : "weights"; // a link may name another model's
    attribute(parts.panels, "data-stage", stage);
    parts.panels.style.setProperty("--across", pass.stages.length > 4 ? "3" : "4");
    attribute(parts.derive, "aria-expanded", String(chosen.derivation));
    parts.derivation.hidden = !chosen.derivation;
    for (const button of parts.stages.children) {
      button.hidden = !pass.stages.includes(button.dataset.stage);
      attribute(button, "aria-pressed", String(button.dataset.stage === stage));
    }
    for (const checkbox of parts.root.querySelectorAll("[data-without]")) checkbox.checked = without.includes(checkbox.dataset.without);
    const done = pass.left(layer);
    parts.scaleSwitch.hidden = pass.uniform || pass.undivided || done.includes("scale");
    parts.maskSwitch.hidden = !pass.causal || done.includes("mask");
    put(parts.warning, without.length ? "The model didn't compute this: only this head's picture is redrawn." : "");
    parts.direction.value = chosen.direction;
    parts.sort.value = chosen.order;
    parts.all.hidden = pass.layers * pass.heads === 1; // nothing to choose from
    parts.sorting.hidden = pass.heads === 1 && !chosen.order; // a link may have an order
    attribute(parts.whole, "aria-disabled", String(!chosen.zoom));
    attribute(parts.farther, "aria-disabled", String(!chosen.zoom));
  }

  showOver(model) {
    const { pass, parts, chosen, cell } = this;
    const { layer, head, direction } = chosen;
    put(parts.overSentence, this.text.show(pass, { layer, head, ...cell }, model?.weights, direction));
  }

  /** Mark a cell under the pointer in all panels; null for none. */
  point(cell) {
    this.pointed = cell;
    this.panels.mark(this.cell, cell);
    this.text.preview(cell);
    const { carrying } = this.panels;
    const { layer, head } = this.chosen;
    put(this.parts.readout, carrying ? this.changing.row.moveInWords(carrying.from.column, carrying.to.column)
      : cellInWords(this.pass, { layer, head, ...(cell ?? this.cell) }, this.steps, this.pass.left(layer, this.without)));
  }

  /** Say which labels had no room, and which part of the text is visible. */
  note() {
    put(this.parts.note, seenInWords(this.pass, this.window, this.panels.room));
  }

  /** The heads in the chosen order. */
  arrange() {
    const { chosen } = this;
    if (chosen.order === this.order) return;
    this.order = chosen.order;
    this.overview.arrange(chosen.order ? ranked(this.pass, chosen.order) : null);
  }

  /** Redraw everything: the page has another size or other colours. */
  draw() {
    if (!this.pass) return;
    this.panels.draw();
    this.panels.mark(this.cell, this.pointed);
    this.note();
    this.text.draw();
    this.hand.draw();
  }
}

// The instrument of the page Inside: the whole forward pass as one picture that zooms from the model to a cell.
// It holds the selection, tells its host of it, and asks the host for tensors alone.

import { attribute, isVisible, offer, partsOf, put } from "../dom.js";
import { typeSize } from "../axis_labels.js";
import { pageOf } from "../canvas.js";
import { InterventionControls } from "../intervention_controls.js";
import { Tooltip } from "../tooltip.js";
import { firstIn, poolOf, reachOf, strongestIn, weightsOf } from "./arcs.js";
import { columnsOf, layOut, whereIs } from "./layout.js";
import { interventionsAt } from "./available_interventions.js";
import { attentionCell } from "./attention_link.js";
import { PictureGestures } from "./gestures.js";
import { Analyses } from "./analyses.js";
import { MARKUP } from "./markup.js";
import { Legend } from "./legend.js";
import { BEGIN, isSame, settled } from "./selection.js";
import { PictureLabels } from "./picture_labels.js";
import { InsidePass } from "./pass.js";
import { Picture } from "./picture.js";
import { fullName } from "./plain_names.js";
import { AnimationControls } from "./animation_controls.js";
import { chaptersOf, phaseAt } from "./animation.js";
import { attentionsOf, structureOf, upFrom } from "./structure.js";
import { Search } from "./search.js";
import { TensorView } from "./tensor_view.js";
import { Breadcrumb } from "./breadcrumb.js";
import { TensorFetcher, missingOf } from "./fetcher.js";
import { CellView } from "./cell_view.js";
import { chapterInWords, selectionInWords, tipOf } from "./selection_description.js";
import { PassDescription } from "./pass_description.js";
import { pictureSize } from "./picture_size.js";
import { savePicture } from "./export.js";
/** @import { Page } from "../canvas.js" */
/** @import { Wish } from "../changes.js" */
/** @import { Recording } from "../recording.js" */
/** @import { Wanted } from "./fetcher.js" */
/** @import { AttentionCell } from "./attention_link.js" */
/** @import { Layout } from "./layout.js" */
/** @import { Chosen } from "./selection.js" */
/** @import { Chapter, Scene } from "./animation.js" */
/** @import { Focus, Structure } from "./structure.js" */

const TOKENS = 60; // pixels at the lower edge of the window that show the prompt's tokens

/**
 * Where the instrument stands; as for `AttentionInstrument`, but `navigate` shows a cell of an attention.
 *
 * @typedef {object} Host
 * @property {(chosen: Chosen) => void} select
 * @property {(parts: Wanted[]) => void} want
 * @property {(wish: Wish) => void} [change]
 * @property {(cell: AttentionCell) => void} [navigate]
 */

export class InsideInstrument {
  /** @type {InsidePass} */ pass;
  /** @type {Structure} */ structure;
  /** @type {Focus | null} */ focus;
  /** @type {number} */ token;
  /** @type {number | null} */ source;
  /** @type {number | null} */ head;
  /** @type {Scene} */ scene;
  /** @type {Chapter[]} */ chapters;
  /** @type {Layout} */ layout;
  /** @type {Page & { accent?: string } | null} */ page;
  /** @type {boolean} */ isBeside;
  /** @type {string | undefined} */ followed; // the chapter of Play that was scrolled to last

  /**
   * @param {HTMLElement} parent
   * @param {Host} host
   */
  constructor(parent, host) {
    parent.innerHTML = MARKUP; // constant
    this.parts = partsOf(parent);
    this.host = host;
    this.chosen = { ...BEGIN };
    this.asking = new TensorFetcher((parts) => host.want(parts));
    const { parts } = this;
    this.tip = new Tooltip(parts.tip);
    this.tip.tellTitles(parts.root);
    this.changing = new InterventionControls(parts.change, parts.changing, host.change);
    this.picture = new Picture(parts.stage);
    this.names = new PictureLabels(parts.stage, {
      open: (open) => this.open(open),
      token: (prefix, token) => this.pickToken(prefix, token),
      hover: (id) => this.light(id),
    });
    this.trail = new Breadcrumb(parts.trail, parts.map, (open) => this.open(open));
    this.legend = new Legend(parts.legend);
    this.prose = new PassDescription(parts.prose, { open: (open) => this.open(open), hover: (id) => this.light(id) });
    this.tensor = new TensorView(parts.opened, {
      cell: (index) => this.openCell(this.chosen.open, index),
      slice: (head) => this.choose({ head }),
      open: (name) => this.open(name),
      row: () => this.asking.look(() => this.needs()),
    });
    this.cell = new CellView(this.tensor.hand, { open: (name, index) => this.openCell(name, index) });
    this.below = new Analyses(parts.below, {
      open: (open) => this.open(open),
      token: (token) => this.pickToken(this.writing.prefix, token),
      choose: (change) => this.pass && this.choose(change),
    });
    this.search = new Search(parts.search, (name) => this.open(name));
    this.play = new AnimationControls(parts.play, parts.chapter, { moved: (moment, isResting) => this.playTo(moment, isResting), count: () => this.chapters?.length ?? 1 });
    this.listen();
    const observer = new ResizeObserver(() => {
      if (parts.stage.clientWidth !== this.page?.width || typeSize() !== this.page.type) this.draw();
    });
    for (const each of [parts.root, parts.stage]) observer.observe(each);
  }

  /**
   * Show a new pass.
   *
   * @param {Recording} recording
   * @param {Partial<Chosen>} chosen what is looked at first
   */
  begin(recording, chosen) {
    this.pass = new InsidePass(recording);
    this.structure = structureOf(this.pass.metadata);
    this.chosen = { ...BEGIN, ...chosen };
    this.picture.begin(this.pass);
    this.makeHeads();
    this.below.begin(this.pass, this.structure);
    this.search.offer(this.pass.names, (name) => fullName(name, this.structure.locations.get(name), this.structure.config));
    this.show();
  }

  /** Take in parts that `want` has asked for. @param {Recording} recording */
  add(recording) {
    const before = this.pass.loaded.size;
    this.pass.add(recording);
    if (this.pass.loaded.size !== before) this.show();
    else this.below.show(this.pass, this.token); // an analysis' parts aren't tensors of the pass
    this.asking.arrived();
  }

  /** Select what a link, or another view, says. @param {Partial<Chosen>} chosen */
  setSelection(chosen) {
    this.chosen = { ...this.chosen, ...chosen };
    if (this.pass) this.show();
  }

  /** @param {Partial<Chosen>} change */
  choose(change) {
    if (isSame(this.chosen, change)) return;
    const isOther = change.token !== undefined && change.token !== this.chosen.token;
    const endsPlay = change.open !== undefined && change.open !== this.chosen.open; // Play's chapters belong to what is open
    this.chosen = { ...this.chosen, ...(isOther && { candidate: null }), ...(endsPlay && { moment: null }), ...change };
    const { root, stage } = this.parts;
    const { activeElement } = root.getRootNode();
    const focused = root.contains(activeElement) && activeElement !== stage ? activeElement : null;
    if (this.names.holds(focused)) stage.focus({ preventScroll: true }); // removing a focused name would lay out the page
    this.show();
    if (focused) (isVisible(focused) ? focused : stage).focus({ preventScroll: true }); // the focus is never lost, so keys go on working
    this.host.select(this.chosen);
  }

  open(open) {
    this.choose({ open, cell: null });
    if (this.focus?.name && !this.isBeside) this.bringIntoSight(this.parts.opened);
  }

  // Scroll to what was opened, but leave half of the window, or more to keep the y `kept` in it, to what it was opened from.
  bringIntoSight(part, kept = Infinity) {
    const { top } = part.getBoundingClientRect();
    if (top < 0.7 * innerHeight) return;
    const covered = parseFloat(getComputedStyle(this.parts.root).scrollMarginTop) + this.parts.bar.offsetHeight;
    part.style.scrollMarginTop = `${Math.round(Math.max(0.5 * innerHeight, top - Math.max(0, kept - covered)))}px`;
    part.scrollIntoView({ block: "start" });
  }

  /** Open a cell, with its head. The selected token stays. */
  openCell(open, cell) {
    const head = cell[this.pass.describe(open).dims.indexOf("head")];
    this.choose({ open, cell, ...(head !== undefined && this.chosen.head !== null && { head }) });
    this.bringIntoSight(this.tensor.hand, this.tensor.selectedTop);
  }

  pickToken(prefix, token) {
    const stack = this.structure.stacks.find((candidate) => candidate.prefix === prefix);
    if (token < 0 || token >= stack.count) return;
    this.choose(stack.writes ? this.tokenChange(token) : { source: token === this.chosen.source ? null : token });
  }

  // The default position isn't a choice: another text has another one.
  tokenChange(token) {
    return { token: token === this.pass.predictedPosition ? null : token };
  }

  get writing() {
    return this.structure.stacks.find(({ writes }) => writes);
  }

  show() {
    const { parts, pass, structure } = this;
    Object.assign(this, settled(this.chosen, structure, pass)); // what this pass has of the selection
    const { chosen } = this;
    this.weights = new Map();
    const weights = (id) => {
      if (!this.weights.has(id)) this.weights.set(id, weightsOf(pass.arcs(id), this.head));
      return this.weights.get(id);
    };
    const isAblated = (id, head) => pass.changed.isAblated(id, head);
    this.scene = {
      focus: this.focus, head: this.head, token: this.token, source: this.source, residual: structure.residual, config: structure.config, weights,
      isAblated,
      reach: reachOf(structure, (id) => weightsOf(pass.arcs(id), this.head, (head) => isAblated(id, head)), this.token), strongest: (part, token) => this.strongest(part, token), ...this.marked(),
    };
    this.chapters = chaptersOf(structure, chosen.open);
    this.play.set(chosen.moment);
    this.scene.play = this.playing();
    this.makeRoom();
    this.drawPicture();
    const cell = this.focus?.name ? chosen.cell : null;
    this.trail.show(this.focus, cell, cell ? pass.inNumbers(chosen.open, cell) : "", structure.config);
    this.legend.show(pass, structure, this.head);
    this.prose.show(structure, this.focus, pass, this.head);
    this.showNumbers();
    this.showChapter();
    put(parts.readout, selectionInWords(pass, this));
    parts.navigate.hidden = !this.host.navigate || !attentionCell(this);
    parts.head.value = this.head === null ? "" : String(this.head);
    parts.arcs.hidden = !this.hasHeads || this.tensorHasHeads; // a map shows the head that is chosen beside it
    attribute(parts.root, "data-open", chosen.open);
    this.below.setSelection(chosen);
    this.below.follow(this.focus?.part?.module ?? null, this.head);
    this.chosen.circuit = this.below.circuits.selection;
    this.showBelow();
    this.changing.show(interventionsAt(pass, this));
  }

  // The selected cell, and those that it is computed from.
  marked() {
    const { pass, focus, chosen } = this;
    if (!focus?.name || !chosen.cell) return { made: [], own: [] };
    return { made: pass.equation(focus.name) ? pass.cellsOf(focus.name, chosen.cell) : [], own: [{ name: focus.name, index: chosen.cell }] };
  }

  /** The token that gets most of another one's weight. */
  strongest(part, token) {
    const isEncoder = part.id.startsWith("encoder.");
    const [queries, labels] = [isEncoder ? "source" : "text", part.crosses || isEncoder ? "source" : "text"].map((which) => this.pass.labels[which].length);
    const weights = this.scene.weights(part.id);
    return firstIn(strongestIn(weights, poolOf(token, queries, weights.queries)), labels, weights.keys);
  }

  playing() {
    const { moment } = this.play;
    if (moment === null) return null;
    const state = phaseAt(moment, this.chapters.length);
    return { state, chapter: this.chapters[state.at] };
  }

  /** Play has reached another moment; null: it has ended. */
  playTo(moment, isResting) {
    const { root, stage } = this.parts;
    if (this.chosen.moment === null && stage.getBoundingClientRect().bottom > innerHeight) root.scrollIntoView({ block: "start" });
    this.chosen = { ...this.chosen, moment };
    this.scene.play = this.playing();
    this.picture.mark(null);
    this.showChapter();
    if (isResting) this.host.select(this.chosen);
  }

  showChapter() {
    const { play } = this.scene;
    this.play.show(play ? chapterInWords(this.pass, this.scene, this.structure, play.chapter) : "");
    attribute(this.parts.stage, "data-playing", String(Boolean(play) && play.state.at < this.chapters.length - 1));
    this.prose.light(play?.chapter.part ?? null);
    if (play && play.chapter.id !== this.followed) this.follow(play.chapter);
    this.followed = play?.chapter.id;
  }

  /** Scroll to what a chapter of Play is about as it begins: the picture may be taller than the window. */
  follow({ id, part }) {
    const label = this.names.labelOf([id, part, whereIs(this.layout, part)?.group?.id]);
    if (!label) return;
    const { top, bottom } = label.getBoundingClientRect();
    if (top < this.parts.bar.getBoundingClientRect().bottom || bottom > innerHeight - TOKENS) label.scrollIntoView({ block: "center" });
  }

  showBelow() {
    this.below.show(this.pass, this.token);
    this.asking.look(() => this.needs());
  }

  showNumbers() {
    const { pass, focus, chosen } = this;
    const name = focus?.name ?? null;
    this.tensor.hand.hidden = !chosen.cell;
    if (!name) return;
    const isSource = focus.stack.prefix === "encoder.";
    this.tensor.show(pass, name, { head: this.head, cell: chosen.cell, token: isSource ? this.source : this.token });
    if (chosen.cell) this.cell.show(pass, name, chosen.cell);
  }

  // Where there is room, what is opened stands beside the picture and takes some of its width.
  makeRoom() {
    const { opened, scene } = this.parts;
    if (opened.hidden === !this.focus?.name) return;
    opened.hidden = !this.focus?.name;
    attribute(scene, "data-opened", String(!opened.hidden));
    this.page = null;
  }

  /** Redraw everything: the page has another size or other colours. */
  draw() {
    if (!this.pass || !this.scene) return;
    this.page = null;
    if (this.focus?.name) [this.tensor, this.cell].forEach((view) => view.draw());
    this.below.draw();
    this.drawPicture();
  }

  drawPicture() {
    const { parts, structure, focus } = this;
    if (!this.page?.width) {
      this.page = { ...pageOf(parts.stage), accent: getComputedStyle(parts.root).getPropertyValue("--accent") };
      this.isBeside = parts.opened.offsetLeft > parts.stage.offsetLeft; // what is open stands beside the picture
    }
    const { page } = this;
    if (!page.width) return;
    this.picture.page = page;
    const { kind, ...room } = pictureSize(page, structure.stacks.length, focus?.name && !this.isBeside);
    attribute(parts.stage, "data-room", kind);
    Object.assign(room, this.names.room(this.pass, structure.stacks, columnsOf(structure.stacks, room).map(({ pitch }) => pitch)));
    this.layout = layOut(structure, focus, room);
    parts.stage.style.setProperty("--tall", `${this.layout.height}px`);
    this.picture.draw(this.layout, this.scene);
    this.names.show(this.pass, this.layout, this.scene);
    this.trail.showMap(focus ? layOut(structure, null, room) : this.layout, focus, this.token, page);
  }

  /** The missing parts of what is shown, the most important first. */
  needs() {
    const { pass, layout, focus, chosen } = this;
    if (pass.isComplete) return [];
    const wanted = missingOf(pass, { layout, focus, cell: chosen.cell, part: (name) => this.partOf(name) });
    if (!pass.hasLens(this.token)) wanted.push(["lens", this.token]);
    return [...wanted, ...this.below.needs(pass, this.token)];
  }

  // A tensor that comes in parts: the selected head, or the row of the selected position or token.
  partOf(name) {
    if (!this.pass.isByRow(name)) return this.pass.headsOf(name) ? this.head : null;
    return name === this.focus?.name ? (this.chosen.cell?.[0] ?? this.tensor.heldAt(this.pass, name, this.token)) : this.token;
  }

  makeHeads() {
    const { n_heads: heads } = this.pass.config;
    this.hasHeads = heads > 1 && attentionsOf(this.structure).length > 0;
    offer(this.parts.head, [["", "Mean of the heads"], ...Array.from({ length: heads }, (_, head) => [head, `Head ${head}`])]);
  }

  get tensorHasHeads() {
    const { dims } = this.pass.describe(this.focus?.name) ?? { dims: [] };
    return dims.includes("head") || dims.includes("kv_head");
  }

  listen() {
    const { parts } = this;
    parts.head.addEventListener("change", () => this.choose({ head: parts.head.value === "" ? null : Number(parts.head.value) }));
    parts.navigate.addEventListener("click", () => this.host.navigate(attentionCell(this)));
    parts.png.addEventListener("click", () => savePicture(this));
    new PictureGestures(this);
  }

  /** Open what is at a point, one level deeper. */
  enter(target) {
    if (!target?.group) return;
    const { group, part, row, token, stack } = target;
    const change = stack.writes && token !== null && row ? this.tokenChange(token) : {};
    if (group.kind !== "block") this.choose({ ...change, open: (row?.name ?? group.target), cell: null });
    else if (!group.isOpen) this.open(group.id);
    else if (row) this.choose({ ...change, open: row.name, cell: null });
    else if (part) this.open(part.id);
  }

  goUp() {
    if (this.chosen.cell) this.choose({ cell: null });
    else if (this.chosen.open) this.open(upFrom(this.structure, this.chosen.open));
  }

  /** Show what lies under the pointer, and highlight its name. */
  point(target, event) {
    const id = target?.part?.id ?? target?.group?.id ?? null;
    this.picture.mark(target);
    this.light(target?.row?.name ?? id, true);
    const lines = target?.group ? tipOf(this.pass, this.scene, target) : null;
    if (lines && event) this.tip.showAt(event.clientX, event.clientY, lines);
    else this.tip.hide();
  }

  /** Highlight a block and its name. */
  light(id, isPointed = false) {
    this.prose.light(id);
    if (!isPointed) this.picture.mark(id ? whereIs(this.layout, id) : null);
  }
}

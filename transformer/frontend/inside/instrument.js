// The whole forward pass as one picture that can be zoomed from the model to a cell. What is looked at is decided here; the
// host is told, and asked only for what has to be computed.

import { attribute, partsOf, put } from "../dom.js";
import { pageOf } from "../canvas.js";
import { Changing } from "../intervention_controls.js";
import { Tip } from "../tip.js";
import { firstIn, poolOf, reachOf, strongestIn, weightsOf } from "./arcs.js";
import { columnsOf, layOut, whereIs } from "./layout.js";
import { changesAt } from "./changes.js";
import { attentionPlace } from "./attention_link.js";
import { PictureGestures } from "./gestures.js";
import { Below } from "./lens.js";
import { MARKUP_INSIDE } from "./markup_inside.js";
import { Legend } from "./legend.js";
import { BEGIN, isSame, settled } from "./selection.js";
import { Names } from "./names.js";
import { InsidePass } from "./pass.js";
import { Picture } from "./picture.js";
import { fullName } from "./plain_names.js";
import { Play } from "./play.js";
import { chaptersOf, sceneAt } from "./scene.js";
import { attentionsOf, structureOf, upFrom } from "./structure.js";
import { Search } from "./search.js";
import { TensorView } from "./tensor_view.js";
import { Trail } from "./trail.js";
import { TensorFetcher, missingOf } from "./fetcher.js";
import { CellView } from "./cell_view.js";
import { chapterInWords, selectionInWords, tipOf } from "./descriptions.js";
import { Prose } from "./prose.js";
import { pictureSize } from "./picture_size.js";
import { savePicture } from "./saving_inside.js";
/** @import { Page } from "../canvas.js" */
/** @import { Change } from "../intervention_controls.js" */
/** @import { Recording } from "../recording.js" */
/** @import { Wanted } from "./fetcher.js" */
/** @import { Place } from "./attention_link.js" */
/** @import { Layout } from "./layout.js" */
/** @import { Chosen } from "./selection.js" */
/** @import { Chapter, Scene } from "./scene.js" */
/** @import { Focus, Structure } from "./structure.js" */

/**
 * Where the instrument stands: as of `AttentionInstrument`, but that turn is to show a cell of an attention.
 *
 * @typedef {object} Host
 * @property {(chosen: Chosen) => void} select
 * @property {(parts: Wanted[]) => void} want
 * @property {(change: Change) => void} [change]
 * @property {(place: Place) => void} [turn]
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

  /**
   * @param {HTMLElement} parent
   * @param {Host} host
   */
  constructor(parent, host) {
    parent.innerHTML = MARKUP_INSIDE; // constant
    this.parts = partsOf(parent);
    this.host = host;
    this.chosen = { ...BEGIN };
    this.asking = new TensorFetcher((parts) => host.want(parts));
    const { parts } = this;
    this.tip = new Tip(parts.tip);
    this.changing = new Changing(parts.change, parts.changing, host.change);
    this.picture = new Picture(parts.stage);
    this.names = new Names(parts.stage, {
      open: (open) => this.open(open),
      token: (prefix, token) => this.pickToken(prefix, token),
      hover: (id) => this.light(id),
    });
    this.trail = new Trail(parts.trail, parts.map, (open) => this.open(open));
    this.legend = new Legend(parts.legend);
    this.prose = new Prose(parts.prose, { open: (open) => this.open(open), hover: (id) => this.light(id) });
    this.tensor = new TensorView(parts.tensor, {
      cell: (place) => this.openCell(this.chosen.open, place),
      slice: (head) => this.choose({ head }),
      open: (name) => this.open(name),
      row: () => this.asking.look(() => this.needs()),
    });
    this.cell = new CellView(parts.cell, { open: (name, place) => this.openCell(name, place) });
    this.below = new Below(parts.below, {
      open: (open) => this.open(open),
      token: (token) => this.pickToken(this.writing.prefix, token),
      choose: (change) => this.pass && this.choose(change),
    });
    this.search = new Search(parts.search, (name) => this.open(name));
    this.play = new Play(parts.play, parts.chapter, { moved: (moment, isResting) => this.playTo(moment, isResting), count: () => this.chapters?.length ?? 1 });
    this.listen();
    new ResizeObserver(([{ contentRect }]) => {
      if (Math.round(contentRect.width) !== this.page?.width) this.draw();
    }).observe(parts.stage);
  }

  /**
   * A new pass.
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
    this.search.offer(this.pass.names, (name) => fullName(name, this.structure.places.get(name), this.structure.norm));
    this.show();
  }

  /** Parts that were asked for. @param {Recording} recording */
  add(recording) {
    const before = this.pass.loaded.size;
    this.pass.add(recording);
    if (this.pass.loaded.size !== before) this.show();
    else this.below.show(this.pass, this.token); // its parts are no tensors of the pass
    this.asking.arrived();
  }

  /** What somebody else has decided to look at, for example a link. @param {Partial<Chosen>} chosen */
  turnTo(chosen) {
    this.chosen = { ...this.chosen, ...chosen };
    if (this.pass) this.show();
  }

  /** @param {Partial<Chosen>} change */
  choose(change) {
    if (isSame(this.chosen, change)) return;
    const isOther = change.token !== undefined && change.token !== this.chosen.token;
    this.chosen = { ...this.chosen, ...(isOther && { candidate: null }), ...change };
    const { root, stage } = this.parts;
    const { activeElement } = root.getRootNode();
    const focused = root.contains(activeElement) && activeElement !== stage ? activeElement : null;
    if (this.names.holds(focused)) stage.focus({ preventScroll: true }); // it may go, and to take the focus from what goes lays out the page
    this.show();
    if (focused) (focused.checkVisibility() ? focused : stage).focus({ preventScroll: true }); // keys work, whatever is gone
    this.host.select(this.chosen);
  }

  open(open) {
    this.choose({ open, cell: null });
    if (this.focus?.name && !this.isBeside) this.bringIntoSight(this.parts.opened);
  }

  // Half of the window is left to what one came from.
  bringIntoSight(part) {
    if (part.getBoundingClientRect().top < 0.7 * innerHeight) return;
    part.style.scrollMarginTop = `${Math.round(0.5 * innerHeight)}px`;
    part.scrollIntoView({ block: "start" });
  }

  /** A cell, and the token it belongs to. */
  openCell(open, cell) {
    const { dims } = this.pass.describe(open);
    const at = dims.findIndex((dim) => dim === "pos" || dim === "query");
    const [place, head] = [cell[at], cell[dims.indexOf("head")]];
    /** @type {Partial<Chosen>} */
    const change = { open, cell };
    const isSource = open.startsWith("encoder.");
    if (place !== undefined && this.pass.describe(open).kind !== "parameter") Object.assign(change, isSource ? { source: place } : { token: place === this.writing.count - 1 ? null : place });
    if (head !== undefined && this.head !== null) change.head = head;
    this.choose(change);
    this.bringIntoSight(this.parts.cell);
  }

  pickToken(prefix, token) {
    const stack = this.structure.stacks.find((each) => each.prefix === prefix);
    if (token < 0 || token >= stack.count) return;
    this.choose(stack.writes ? { token: token === stack.count - 1 ? null : token } : { source: token === this.chosen.source ? null : token });
  }

  get writing() {
    return this.structure.stacks.find(({ writes }) => writes);
  }

  show() {
    const { parts, pass, structure } = this;
    Object.assign(this, settled(this.chosen, structure, pass)); // with what is looked at, as far as this pass has it
    const { chosen } = this;
    this.weights = new Map();
    const weights = (id) => {
      if (!this.weights.has(id)) this.weights.set(id, weightsOf(pass.arcs(id), this.head));
      return this.weights.get(id);
    };
    this.scene = {
      focus: this.focus, head: this.head, token: this.token, source: this.source, residual: structure.residual, norm: structure.norm, weights,
      reach: reachOf(structure, weights, this.token), strongest: (part, token) => this.strongest(part, token), ...this.marked(),
    };
    this.chapters = chaptersOf(structure, chosen.open);
    this.play.set(chosen.moment);
    this.scene.play = this.playing();
    this.makeRoom();
    this.drawPicture();
    const cell = this.focus?.name ? chosen.cell : null;
    this.trail.show(this.focus, cell, cell ? pass.inNumbers(chosen.open, cell) : "", structure.norm);
    this.legend.show(pass, structure, this.head);
    this.prose.show(structure, this.focus, pass, this.head);
    this.showNumbers();
    this.showChapter();
    put(parts.readout, selectionInWords(pass, this));
    parts.turn.hidden = !this.host.turn || !attentionPlace(this);
    parts.head.value = this.head === null ? "" : String(this.head);
    attribute(parts.root, "data-open", chosen.open);
    this.below.turnTo(chosen);
    this.below.follow(this.focus?.part?.module ?? null, this.head);
    this.chosen.circuit = this.below.circuits.said;
    this.showBelow();
    this.changing.show(changesAt(pass, this));
  }

  // The cell that is looked at, and those that it is made of.
  marked() {
    const { pass, focus, chosen } = this;
    if (!focus?.name || !chosen.cell) return { made: [], own: [] };
    return { made: pass.equation(focus.name) ? pass.cellsOf(focus.name, chosen.cell) : [], own: [{ name: focus.name, index: chosen.cell }] };
  }

  /** The token that another one looks at most. */
  strongest(part, token) {
    const isEncoder = part.id.startsWith("encoder.");
    const [asked, labels] = [isEncoder ? "source" : "text", part.crosses || isEncoder ? "source" : "text"].map((which) => this.pass.labels[which].length);
    const found = this.scene.weights(part.id);
    return firstIn(strongestIn(found, poolOf(token, asked, found.queries)), labels, found.keys);
  }

  playing() {
    const { moment } = this.play;
    if (moment === null) return null;
    const state = sceneAt(moment, this.chapters.length);
    return { state, chapter: this.chapters[state.at] };
  }

  /** Play has come to another moment; null: it is left. */
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
  }

  showBelow() {
    this.below.show(this.pass, this.token);
    this.asking.look(() => this.needs());
  }

  showNumbers() {
    const { parts, pass, focus, chosen } = this;
    const name = focus?.name ?? null;
    parts.cell.hidden = !chosen.cell;
    if (!name) return;
    const isSource = focus.stack.prefix === "encoder.";
    this.tensor.show(pass, name, { head: this.head, cell: chosen.cell, token: isSource ? this.source : this.token });
    if (chosen.cell) this.cell.show(pass, name, chosen.cell);
  }

  // What is opened stands beside the picture where there is room, and takes some of its width.
  makeRoom() {
    const { opened, scene } = this.parts;
    if (opened.hidden === !this.focus?.name) return;
    opened.hidden = !this.focus?.name;
    attribute(scene, "data-opened", String(!opened.hidden));
    this.page = null;
  }

  /** Draw everything again, in the page's present size and colours. */
  draw() {
    if (!this.pass || !this.scene) return;
    this.page = null;
    if (this.focus?.name) [this.tensor, this.cell].forEach((view) => view.draw());
    this.below.draw();
    this.drawPicture();
  }

  /** Draw the picture as the scene is now. */
  drawPicture() {
    const { parts, structure, focus } = this;
    if (!this.page?.width) {
      this.page = { ...pageOf(parts.stage), accent: getComputedStyle(parts.root).getPropertyValue("--accent") };
      this.isBeside = parts.opened.offsetLeft > parts.stage.offsetLeft; // where what is open stands
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

  /** The parts that what is looked at shows and that aren't there yet, the most important first. */
  needs() {
    const { pass, layout, focus, chosen } = this;
    if (pass.isComplete) return [];
    const wanted = missingOf(pass, { layout, focus, cell: chosen.cell, part: (name) => this.partOf(name) });
    if (!pass.hasLens(this.token)) wanted.push(["lens", this.token]);
    return [...wanted, ...this.below.needs(pass, this.token)];
  }

  // Of a tensor that comes part by part the part that is looked at: a head, or the row of a position or a token.
  partOf(name) {
    if (!this.pass.isByRow(name)) return this.pass.headsOf(name) ? (this.head ?? 0) : null;
    return name === this.focus?.name ? (this.chosen.cell?.[0] ?? this.tensor.heldAt(this.pass, name, this.token)) : this.token;
  }

  makeHeads() {
    const { n_heads: heads } = this.pass.config;
    const choices = [["", "Mean of the heads"], ...Array.from({ length: heads }, (_, head) => [String(head), `Head ${head}`])];
    this.parts.arcs.hidden = heads < 2 || !attentionsOf(this.structure).length;
    this.parts.head.replaceChildren(...choices.map(([value, title]) => Object.assign(document.createElement("option"), { value, textContent: title })));
  }

  listen() {
    const { parts } = this;
    parts.head.addEventListener("change", () => this.choose({ head: parts.head.value === "" ? null : Number(parts.head.value) }));
    parts.turn.addEventListener("click", () => this.host.turn(attentionPlace(this)));
    parts.png.addEventListener("click", () => savePicture(this));
    new PictureGestures(this);
  }

  /** One level into what lies at a place. */
  enter(found) {
    if (!found?.group) return;
    const { group, part, row, token, stack } = found;
    const change = stack.writes && token !== null && row ? { token: token === stack.count - 1 ? null : token } : {};
    if (group.kind !== "block") this.choose({ ...change, open: (row?.name ?? group.target), cell: null });
    else if (!group.isOpen) this.open(group.id);
    else if (row) this.choose({ ...change, open: row.name, cell: null });
    else if (part) this.open(part.id);
  }

  goUp() {
    if (this.chosen.cell) this.choose({ cell: null });
    else if (this.chosen.open) this.open(upFrom(this.structure, this.chosen.open));
  }

  /** Say what lies under the pointer, and light its word. */
  point(found, event) {
    const id = found?.part?.id ?? found?.group?.id ?? null;
    this.picture.mark(found);
    this.light(found?.row?.name ?? id, true);
    const lines = found?.group ? tipOf(this.pass, this.scene, found) : null;
    if (lines && event) this.tip.showAt(event.clientX, event.clientY, lines);
    else this.tip.hide();
  }

  /** Light a block and the word that names it. */
  light(id, isPointed = false) {
    this.prose.light(id);
    if (!isPointed) this.picture.mark(id ? whereIs(this.layout, id) : null);
  }
}

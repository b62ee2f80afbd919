// Draws all views of a text: tokens, timeline, candidates, attention, sampling, branches and the table.
// It decides nothing: whoever owns it says what is the case, and hears of what the hand does.

import { attribute, put } from "../dom.js";
import { counted } from "../numbers.js";
import { Tip } from "../tip.js";
import { Branches, sideTitle } from "./branches.js";
import { Candidates } from "./candidates.js";
import { Controls } from "./controls.js";
import { drawnWith } from "./sampling.js";
import { HowDrawn } from "./sampling_steps.js";
import { NumbersTable } from "./numbers_table.js";
import { Picture } from "./picture.js";
import { savePicture } from "./saving.js";
import { TokenStrip } from "./token_strip.js";
import { describe, howChosen, indexOf, lookOf } from "./token_descriptions.js";
import { Timeline } from "./timeline.js";
import { resampledSentence } from "./resampled.js";

export class TextView {
  /**
   * on: { select(place), pick(token), back(branch), compare(branch or null), press(button), turn(dial, value), leave(token) }; leave,
   * to see a token's logit come about, is missing where that can't be.
   */
  constructor(parts, on) {
    this.parts = parts;
    this.tip = new Tip(parts.tip);
    const select = (index) => {
      const place = index - this.shown.story.before;
      if (this.shown.isWritten(place)) on.select(place);
    };
    this.strip = new TokenStrip(parts, select, () => this.tip.hide());
    this.timeline = new Timeline(parts, (at) => {
      const { story } = this.shown;
      on.select(story.start + at);
      this.strip.reveal(story.before + story.start + at);
    });
    this.candidates = new Candidates(parts, on.pick);
    this.picture = new Picture(parts);
    this.howDrawn = new HowDrawn(parts, this.tip);
    this.branches = new Branches(parts, on);
    this.table = new NumbersTable(parts, () => this.shown.story.title);
    this.controls = new Controls(parts, on);
    parts.sampling.addEventListener("click", () => {
      this.showSampling(parts.drawn.hidden);
      parts.drawn.scrollIntoView({ block: "nearest" });
    });
    parts.aside.addEventListener("click", () => {
      this.strip.focus(); // the button goes
      if (this.shown.aside) on.back(this.shown.aside.id);
    });
    parts.instead.addEventListener("click", () => !this.isLocked && this.verdict?.token !== undefined && on.pick(this.verdict.token));
    parts.inside.addEventListener("click", () => this.howDrawn.token !== null && on.leave(this.howDrawn.token));
    parts.inside.hidden = !on.leave;
    parts.png.addEventListener("click", () => this.save());
    this.listen();
  }

  listen() {
    const { root, strip, columns } = this.parts;
    // A click brings the focus, too, and what it says stands below the text: the tip would stay over what is clicked next.
    strip.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && this.describe(event.target, indexOf(event)));
    for (const area of [strip, columns]) {
      area.addEventListener("pointerover", (event) => this.describe(event.target.closest("[data-index]"), indexOf(event)));
      area.addEventListener("pointerleave", () => this.tip.hide());
    }
    strip.addEventListener("focusout", () => this.tip.hide());
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.tip.hide());
    let drawnAt = 0;
    new ResizeObserver(([{ contentRect }]) => {
      if (contentRect.width === drawnAt) return; // only its height has changed
      drawnAt = contentRect.width;
      this.draw();
    }).observe(root);
  }

  describe(target, index) {
    if (!target || index === null || index >= this.shown.count) this.tip.hide();
    else this.tip.show(target, describe(this.shown.story, index, this.look));
  }

  /** shown: the instrument, of which this reads what is the case. */
  show(shown) {
    this.shown = shown;
    const { parts } = this;
    const { story, length, place, count, isLive, whose } = shown;
    const index = story.before + place;
    const row = story.row(whose, place);
    this.look = lookOf(row, index - 1);
    this.isLocked = isLive || shown.isAsking;
    this.strip.update(story, count, this.look, isLive);
    this.strip.showSelection(index, isLive);
    const written = length - story.start;
    const isNext = place >= length;
    this.timeline.show(written, place - story.start, isNext ? "next token" : `token ${place}`);
    put(parts.details, howChosen(story, place, isNext));
    this.showPicture(row);
    this.showCandidates();
    this.controls.show(shown.chosen);
    this.showDrawn();
    this.showBranches();
    this.table.show(story, length, isLive);
    this.showStatus();
    this.tip.hideIfGone();
    if (isLive || isNext) this.strip.follow();
    const canWrite = !isLive && !shown.isOver;
    this.controls.allow({
      generate: canWrite, once: canWrite, stop: isLive, clear: written > 0 && !shown.isAsking,
      undo: Boolean(shown.offered.can_undo) && !this.isLocked,
    });
  }

  showPicture(row) {
    const { story, count, whose, place } = this.shown;
    const [attention, layer, head] = whose ?? [];
    const where = whose ? `${attention === "cross" ? "to the source, " : "in "}layer ${layer}, head ${head}` : "";
    const isComing = whose && !row && !this.shown.isRefused(whose, place);
    this.picture.update(story, count, this.look, where, isComing ? "on its way" : "nothing to show");
  }

  showCandidates() {
    const { story, chosen, place, length } = this.shown;
    const next = place >= length;
    const logits = story.logits(place);
    const drawn = logits ? drawnWith(logits, chosen) : null;
    const written = next ? null : story.token(place).id;
    const found = story.likeliest(place, 10).map(({ id, probability }) => (
      { id, label: story.kind(id).label, probability, sampled: drawn?.[id], chosen: id === written }));
    const before = story.token(place - 1)?.label ?? "";
    this.candidates.update({ title: `Candidates for token ${place}, after “${before}”`, found, locked: this.isLocked, next });
  }

  showDrawn() {
    const { parts } = this;
    const { story, chosen, place, length, isStale } = this.shown;
    const isNext = place >= length;
    const token = story.token(place);
    const label = (id) => story.kind(id).label;
    // Nobody knows the random number of a token that was written without one, or elsewhere.
    const point = token && (token.dials?.temperature !== 0 || isNext) ? token.point ?? null : null;
    const drawn = this.howDrawn.show({ logits: story.logits(place), dials: chosen, point, written: token?.id ?? null, label });
    put(parts.drawnPlace, isNext ? `token ${place}, which comes next` : `token ${place} “${token.label}”`);
    this.verdict = resampledSentence({ token, drawn, chosen, isNext, isStale, label });
    put(parts.verdict, this.verdict.words);
    const offers = this.verdict.token !== undefined;
    put(parts.instead, offers ? `Write “${label(this.verdict.token)}” here` : "Write it here");
    parts.instead.style.visibility = offers ? "" : "hidden"; // it keeps its place
    attribute(parts.instead, "aria-disabled", String(this.isLocked));
  }

  showBranches() {
    const { story, length, offered: { branches }, compared } = this.shown;
    this.branches.show(branches, { locked: this.isLocked, comparing: compared?.other ?? null });
    if (!compared) {
      this.branches.showCompared(null, null);
      return;
    }
    const { first, tokens, other } = compared;
    const own = story.tokens.slice(first - story.start, length - story.start);
    const current = branches.find((branch) => branch.current).id;
    this.branches.showCompared({ title: sideTitle(current, first, own), tokens: own }, { title: sideTitle(other, first, tokens), tokens });
  }

  showStatus() {
    const { parts } = this;
    const { isLive, isWaiting } = this.shown;
    // Many announcements a second would drown a screen reader: it hears the first and the last.
    attribute(parts.status, "aria-live", isLive && this.wasLive ? "off" : "polite");
    attribute(parts.verdict, "aria-live", isLive ? "off" : "polite");
    this.wasLive = isLive;
    this.saysWaiting = isWaiting;
    attribute(parts.root, "data-live", String(isLive));
    put(parts.status, isWaiting ? "Waiting for the model…" : this.status());
    const { aside } = this.shown;
    put(parts.aside, aside ? `Return to branch ${aside.id}` : "Return");
    parts.aside.hidden = !aside || isLive;
  }

  status() {
    const { story, length, goal, isOver, aside, offered: { branches, can_undo: canUndo } } = this.shown;
    const written = length - story.start;
    if (goal !== null) return `Writing: ${counted(written, "token")}, ${goal - length} to go.`;
    if (!written && !aside) return "Press Generate, or click a candidate.";
    const which = branches.length > 1 ? ` in branch ${branches.find(({ current }) => current).id}` : "";
    const found = `${counted(written, "token")} written${which}`;
    if (isOver) return `${found}, and the text has ended. Click another candidate, change the prompt, or press ${canUndo ? "Undo" : "Clear"}.`;
    if (aside) return `${found}. Branch ${aside.id} is kept.`;
    return `${found}. Click one to see how it was chosen.`;
  }

  /** Open what is said of the drawing of tokens, with its dials, or close it. */
  showSampling(isOpen) {
    const { drawn, sampling } = this.parts;
    drawn.hidden = !isOpen;
    attribute(sampling, "aria-expanded", String(isOpen));
    this.howDrawn.draw();
  }

  /** Draw what is drawn in pixels again, in the page's present size and colours. */
  draw() {
    this.howDrawn.refresh();
    this.howDrawn.draw();
  }

  save() {
    if (!this.shown) return;
    const { parts } = this;
    const { story, place, count } = this.shown;
    savePicture({
      root: parts.root, name: `${story.title}-text`,
      shown: {
        tokens: Array.from({ length: count }, (_, index) => story.at(index)), look: this.look, selected: story.before + place,
        candidates: this.candidates.rowsShown,
        titles: { text: this.status(), candidates: parts.title.textContent, look: `Attention ${parts.largest.textContent}` },
      },
    });
  }
}

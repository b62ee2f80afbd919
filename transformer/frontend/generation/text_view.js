// Draws all views of a text: tokens, timeline, candidates, attention, sampling, branches and the table. It holds no state:
// its owner tells it what to show, and hears what the visitor does.

import { attribute, onWidth, put } from "../dom.js";
import { counted } from "../number_format.js";
import { followPointer } from "../pointing.js";
import { Tooltip } from "../tooltip.js";
import { Branches, sideTitle } from "./branches.js";
import { Candidates } from "./candidates.js";
import { Controls } from "./controls.js";
import { drawnWith } from "./sampling.js";
import { SamplingSteps } from "./sampling_steps.js";
import { TokenTable } from "./token_table.js";
import { AttentionBars } from "./attention_bars.js";
import { savePicture } from "./export.js";
import { TokenStrip } from "./token_strip.js";
import { describe, howChosen, inSource, indexOf, lookOf, lookedAt } from "./token_descriptions.js";
import { Timeline } from "./timeline.js";
import { resampledSentence } from "./resampling.js";

export class TextView {
  /**
   * on: { select(position), selectSource(index), pick(token), back(branch), compare(branch or null), press(button), set(setting, value), leave(token) }; leave
   * opens the page that shows how a token's logit is computed, and is missing where there is none.
   */
  constructor(parts, on) {
    this.parts = parts;
    this.tip = new Tooltip(parts.tip);
    this.tip.tellTitles(parts.root);
    const select = (index) => {
      const { generated } = this.shown;
      const position = index - generated.before;
      if (position < 0) on.selectSource(index);
      else on.select(position < generated.start ? position + 1 : position); // a token of the prompt selects the prediction after it
    };
    this.strip = new TokenStrip(parts, select, () => this.tip.hide());
    this.timeline = new Timeline(parts, (position) => {
      on.select(position);
      this.strip.reveal(this.shown.generated.before + position);
    });
    this.candidates = new Candidates(parts, on.pick);
    this.picture = new AttentionBars(parts);
    this.howDrawn = new SamplingSteps(parts, this.tip);
    this.branches = new Branches(parts, on);
    this.table = new TokenTable(parts, () => this.shown.generated.title);
    this.controls = new Controls(parts, on);
    parts.sampling.addEventListener("click", () => {
      this.showSampling(parts.drawn.hidden);
      parts.drawn.scrollIntoView({ block: "nearest" });
    });
    parts.aside.addEventListener("click", () => {
      this.strip.focus(); // the button disappears
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
    // Only for the keyboard: after a click, the tip would cover what is clicked next.
    strip.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && this.describe(event.target, indexOf(event)));
    for (const kind of ["click", "focusout"]) strip.addEventListener(kind, () => this.tip.hide());
    for (const area of [strip, columns]) {
      followPointer(area, (event) => (event ? this.describe(event.target.closest("[data-index]"), indexOf(event)) : this.tip.hide()), "pointerover");
    }
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.tip.hide());
    onWidth(root, () => this.draw());
  }

  describe(target, index) {
    if (!target || index === null || index >= this.shown.count) this.tip.hide();
    else this.tip.show(target, describe(this.shown.generated, index, this.look));
  }

  /** shown: the instrument, whose state is drawn. */
  show(shown) {
    this.shown = shown;
    const { parts } = this;
    const { generated, length, position, count, isLive, whose } = shown;
    const index = generated.before + position;
    const row = generated.row(whose, position);
    this.look = lookOf(row, index - 1);
    this.isLocked = isLive || shown.isFrozen;
    const { sourceIndex } = shown;
    const isGiven = position < generated.start;
    const onSource = sourceIndex === null ? null : lookedAt(generated, whose, sourceIndex, length);
    this.strip.update(generated, count, sourceIndex === null ? this.look : onSource, isLive);
    this.strip.showSelection(sourceIndex ?? (isGiven ? index - 1 : index), isLive);
    const written = length - generated.start;
    const isNext = position >= length;
    this.timeline.show(generated.start, written && !isLive && !shown.isOver ? length : length - 1, position);
    put(parts.details, sourceIndex === null ? howChosen(generated, position, isNext) : inSource(generated, sourceIndex));
    this.showPicture(row, onSource);
    this.showCandidates();
    this.controls.show(shown.chosen);
    this.showDrawn();
    this.showBranches();
    this.table.show(generated, length, isLive);
    this.showStatus();
    this.tip.hideIfGone();
    if (isLive || isNext) this.strip.follow();
    const canWrite = !this.isLocked && !shown.isOver;
    this.controls.allow({
      generate: canWrite, writeOne: canWrite, stop: isLive, clear: written > 0 && !shown.isFrozen,
      undo: Boolean(shown.offered.can_undo) && !this.isLocked,
    });
  }

  showPicture(row, onSource) {
    const { generated, count, whose, position } = this.shown;
    const [attention, layer, head] = whose ?? [];
    this.parts.reading.classList.toggle("without-attention", !whose);
    const where = whose ? `${attention === "cross" ? "to the source, " : "in "}layer ${layer}, head ${head}` : "";
    const isComing = whose && !row && !this.shown.isRefused(whose, position);
    const more = this.shown.isAblated ? " (ablated: its output is set to zero)" : "";
    this.picture.update(generated, count, this.look, where, isComing ? "on its way" : "nothing to show", onSource?.summary, more);
  }

  showCandidates() {
    const { generated, chosen, position, length } = this.shown;
    const next = position >= length;
    const isGiven = position < generated.start;
    const logits = generated.logits(position);
    const drawn = logits ? drawnWith(logits, chosen) : null;
    const written = next ? null : generated.token(position).id;
    const candidates = generated.likeliest(position, 10).map(({ id, probability }) => (
      { id, label: generated.kind(id).label, probability, sampled: drawn?.[id], chosen: id === written }));
    const before = generated.token(position - 1)?.label ?? "";
    const hint = isGiven || this.shown.isFrozen ? "To change the prompt, edit it above." : next ? "Click one to write it." : "Click one to continue from it instead.";
    this.candidates.update({ title: `Candidates for token ${position}, after “${before}”`, hint, candidates, locked: this.isLocked || isGiven, next });
  }

  showDrawn() {
    const { parts } = this;
    const { generated, chosen, position, length, isStale } = this.shown;
    const isNext = position >= length;
    const token = generated.token(position);
    const label = (id) => generated.kind(id).label;
    // The random number is unknown for a token that was drawn elsewhere, or greedily.
    const point = token && (token.settings?.temperature !== 0 || isNext) ? token.point ?? null : null;
    const drawn = this.howDrawn.show({ logits: generated.logits(position), settings: chosen, point, written: token?.id ?? null, label });
    put(parts.drawnPlace, isNext ? `token ${position}, the next` : `token ${position} “${token.label}”`);
    this.verdict = resampledSentence({ token, drawn, chosen, isNext, isStale, label });
    put(parts.verdict, this.verdict.words);
    const offers = this.verdict.token !== undefined;
    put(parts.instead, offers ? `Write “${label(this.verdict.token)}” here` : "Write it here");
    parts.instead.style.visibility = offers ? "" : "hidden"; // it keeps its place
    attribute(parts.instead, "aria-disabled", String(this.isLocked));
  }

  showBranches() {
    const { generated, length, offered: { branches }, compared } = this.shown;
    this.branches.show(branches, { locked: this.isLocked, comparing: compared?.other ?? null });
    if (!compared) {
      this.branches.showCompared(null, null);
      return;
    }
    const { first, tokens, other } = compared;
    const own = generated.tokens.slice(first - generated.start, length - generated.start);
    const current = branches.find((branch) => branch.current).id;
    this.branches.showCompared({ title: sideTitle(current, first, own), tokens: own }, { title: sideTitle(other, first, tokens), tokens });
  }

  showStatus() {
    const { parts } = this;
    const { isLive, isWaiting } = this.shown;
    // Screen readers hear only the first and the last of many announcements a second.
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
    const { generated, length, goal, isOver, aside, offered: { branches, can_undo: canUndo } } = this.shown;
    const written = length - generated.start;
    if (this.shown.isFrozen) return "The prompt can't be read. Correct it to generate.";
    if (goal !== null) return `Writing: ${counted(written, "token")}, ${goal - length} to go.`;
    if (!written && !aside) return "Press Generate, or click a candidate.";
    const which = branches.length > 1 ? ` in branch ${branches.find(({ current }) => current).id}` : "";
    const summary = `${counted(written, "token")} written${which}`;
    if (isOver) return `${summary}, and the text has ended. Click another candidate, change the prompt, or press ${canUndo ? "Undo" : "Clear"}.`;
    if (aside) return `${summary}. Branch ${aside.id} is kept.`;
    return `${summary}. Click one to see how it was chosen.`;
  }

  /** Open or close the steps of sampling, with their settings. */
  showSampling(isOpen) {
    const { drawn, sampling } = this.parts;
    drawn.hidden = !isOpen;
    attribute(sampling, "aria-expanded", String(isOpen));
    this.howDrawn.draw();
  }

  /** Redraw the canvases: the page has another size or other colours. */
  draw() {
    this.howDrawn.refresh();
    this.howDrawn.draw();
  }

  save() {
    if (!this.shown) return;
    const { parts } = this;
    const { generated, position, count } = this.shown;
    savePicture({
      root: parts.root, name: `${generated.title}-text`,
      shown: {
        tokens: Array.from({ length: count }, (_, index) => generated.at(index)), look: this.look, selected: generated.before + position,
        candidates: this.candidates.rowsShown,
        titles: { text: this.status(), candidates: parts.title.textContent, look: `Attention ${parts.largest.textContent}` },
      },
    });
  }
}

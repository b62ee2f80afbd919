// The shell of every page: one line with the model, the prompt, examples and a menu; below it what is to be known, and what went wrong;
// and a view, the page's own or the one that a lesson's step shows. It computes nothing: it changes the page state, has the text read, and has the view drawn.

import { ApiError } from "../api_error.js";
import { changed, readChanges, stepsBefore } from "../changes.js";
import { attribute, node, put } from "../dom.js";
import { effectOf } from "./changed_model.js";
import { grammarOf } from "./grammar.js";
import { ModelMenu } from "./model_menu.js";
import { MoreMenu } from "./more_menu.js";
import { Notices } from "./notices.js";
import { DEFAULT_MODEL, NotingReader, PageState, calledOf, pageState } from "./page_state.js";
import { PromptLine } from "./prompt_line.js";
import { EmptyPrompt, UnreadableText, namedAfter, noticesOf, readPrompt, textOf } from "./text_reading.js";
import { needsModel, otherPromptOf, viewData } from "./view_data.js";
import { ViewSlot, apiOf } from "./view_slot.js";
/** @import { Answers, Model } from "./answers.js" */
/** @import { Changes, Wish } from "../changes.js" */
/** @import { MenuItem } from "./more_menu.js" */
/** @import { PageText } from "./text_reading.js" */
/** @import { Views } from "./view_slot.js" */

/**
 * @typedef {object} ListedModel
 * @property {string} name
 * @property {string} title
 * @property {string} group
 * @property {string} [meaning] of its group, in a sentence: the first of a group has it
 * @property {string[]} examples
 * @property {boolean} [causal] whether it predicts what comes next, rather than what is masked
 * @property {boolean} [attends] whether it has attention by queries and keys
 * @property {string | null} [corpus] the text it was trained on
 * @property {string} [language]
 * @property {number} [parameters]
 *
 * @typedef {object} ShellHost what a shell needs of where it stands
 * @property {{ title: string, sentence: string }} page the page that is open
 * @property {Views} views those of this page; without one of the page's name the host draws it by itself
 * @property {{ page: string, place: HTMLElement }} [embedded] the page whose view is shown in this place, and not the open page's own
 * @property {boolean} [usesModel] whether the page is about a model and a prompt; true if left out
 * @property {boolean} [isBare] whether the shell shows neither model nor prompt
 * @property {boolean} [isFixed] whether it shows them, and lets nobody change them
 * @property {Answers} answers
 * @property {ListedModel[]} catalogue
 * @property {((page: string, state: PageState) => void) | null} navigate opens another page with this state; null where there is none
 * @property {boolean} [isLinked] whether the page has an address that others can open; unless it says otherwise, it has
 * @property {(state: PageState, read: { model: Model | null, text: PageText | null }) => void} [changed] told whenever something has been read anew
 * @property {string[]} [notices] what the host has to say, until it is told that they were read
 * @property {() => void} [noticesRead]
 * @property {MenuItem[]} [menu] what else the menu has
 * @property {(MenuItem & { dismissal: string, dismiss: () => void }) | null} [offer] what a newcomer is offered, until it is taken or dismissed
 */

const AGAIN_MS = 5000; // after which what failed for the moment is tried again
const REOPEN_MS = 1000; // after which a replaced model is opened anew: while a new version is rolled out, servers may differ

/** What becomes of a prompt, by the model's architecture. */
const READ = {
  "decoder-only": "The model continues this.", "encoder-decoder": "The encoder reads this.",
  "encoder-only": "The model reads this in both directions, and fills in its masks.",
};

export class Shell {
  /** @type {ShellHost} */ host;
  /** @type {NotingReader} */ reader; // of what is shown
  page = ""; // whose view belongs in `place`
  shown = ""; // the page whose view is drawn
  /** @type {HTMLElement} */ place;
  /** @type {Model | null} */ model = null;
  /** @type {Model | null} */ named = null; // with the names of the new words of the text that is shown
  /** @type {{ model: Model, text: PageText } | null} */ lastRead = null; // what could be read last
  /** @type {string | null} */ replaced = null; // what is said of a link's model that isn't here, or that has another version

  /** @param {HTMLElement} parent @param {ShellHost} host */
  constructor(parent, host) {
    this.state = pageState();
    this.root = node("div", "shell", parent);
    this.root.dataset.testid = "shell";
    const line = node("div", "shell-line", this.root);
    this.models = new ModelMenu(line, (name) => this.chooseModel(name));
    this.prompt = new PromptLine(line, (text) => this.type(text));
    this.more = new MoreMenu(line, {
      become: (changes) => this.becomeChanged(changes), read: (text) => otherPromptOf(this.named, text),
      groupOf: (name) => this.groupOf(name),
      reads: (how) => this.state.set({ reads: how === "chat" ? null : how }), tooLong: () => this.tooLong(),
    });
    this.notices = new Notices(this.root, {
      typed: () => this.prompt.field.value, retype: (text) => this.retype(text), dismissed: () => this.noticesDismissed(),
    });
    this.heading = node("div", "shell-heading", this.root);
    this.title = node("h1", "", this.heading);
    this.sentence = node("p", "", this.heading);
    this.offer = node("div", "shell-offer", this.heading);
    this.ownPlace = node("div", "shell-view", this.root);
    this.ownPlace.dataset.part = "view";
    /** @type {Map<string, string[]>} what the changes of each model were, the latest last */
    this.changesBefore = new Map();
    const unfollow = this.state.follow(() => (this.root.isConnected ? this.follow() : unfollow()));
    this.update(host);
  }

  /** Another page is open, or the same has other models. @param {ShellHost} host */
  update(host) {
    const { place, page } = host.embedded ?? { place: this.ownPlace, page: host.page.title };
    const isOther = page !== this.page || place !== this.place;
    Object.assign(this, { host, place, page });
    this.root.classList.toggle("bare", Boolean(host.isBare));
    for (const control of [this.models.select, this.prompt.field, this.prompt.examples]) control.disabled = Boolean(host.isFixed);
    put(this.title, host.page.title);
    put(this.sentence, host.page.sentence);
    this.models.offer(host.catalogue);
    this.more.offer(host.menu ?? [], { isLinked: host.isLinked !== false, isFixed: Boolean(host.isFixed) });
    this.showOffer(host.offer ?? null);
    this.notices.hosted = host.notices ?? [];
    this.notices.show(this.notices.said);
    if (isOther) {
      this.slot?.end();
      place.replaceChildren();
      const heading = host.embedded ? node("div", "", place) : this.heading;
      this.slot = new ViewSlot(place, host.views, (event, value) => this.receive(event, value), { heading, navigates: host.navigate !== null });
      this.shown = "";
    }
    this.follow();
  }

  /** The page state is another one: what is computed from it is shown anew if its part of it is. */
  follow() {
    if (this.page !== this.shown || this.reader.isOutdated(this.state)) this.show();
  }

  get modelName() {
    return this.reader.get("model") ?? DEFAULT_MODEL;
  }

  /** Read the prompt and have the view drawn. What was shown before stays while that can't be. */
  async show() {
    clearTimeout(this.again);
    const turn = (this.turn = {});
    const reader = (this.reader = new NotingReader(this.state, this.page));
    this.shown = this.page;
    const { catalogue, answers, usesModel = true } = this.host;
    this.place.dataset.state = "asking";
    try {
      const known = catalogue.find(({ name }) => name === this.modelName);
      if (!known) {
        this.replaceModel();
        return;
      }
      this.models.show(this.modelName);
      this.prompt.show(this.state.get("prompt") ?? known.examples[0] ?? "", known.examples);
      const model = usesModel ? await answers.open(this.modelName) : null;
      if (turn !== this.turn) return;
      this.model = model;
      this.prompt.next.grammar = model && grammarOf(model.about);
      if (model) this.prompt.field.title = READ[model.about.config.architecture] ?? READ["decoder-only"];
      let problem = null;
      const text = model && (await textOf(model, reader).catch((error) => {
        if (needsModel(this.page) || !(error instanceof UnreadableText)) throw error;
        problem = error; // and the page shows what it has without a text
        return null;
      }));
      if (turn !== this.turn) return;
      if (text) this.lastRead = { model, text };
      this.more.show(model, this.state, this.changes, text);
      await this.drawView(turn, model, text);
      if (problem) throw problem;
      if (turn === this.turn) this.host.changed?.(this.state, { model, text });
    } catch (error) {
      if (turn === this.turn) await this.fail(error);
    } finally {
      if (turn === this.turn) this.follow(); // something that was read may be another by now
    }
  }

  /** A model's group, and what it means. @param {string} name */
  groupOf(name) {
    const { catalogue } = this.host;
    const group = catalogue.find((model) => model.name === name)?.group;
    return catalogue.find((model) => model.group === group);
  }

  /** The link's model isn't here: another one is shown. */
  replaceModel() {
    const { catalogue } = this.host;
    const other = catalogue.find(({ name }) => name === DEFAULT_MODEL) ?? catalogue[0];
    if (!other) throw new ApiError("There is no model here.");
    this.replaced = `There is no model “${this.modelName.slice(0, 40)}” here; ${other.title} is shown.`;
    this.state.set({ model: other.name });
  }

  /** The files of a model that was opened have been replaced: go on with the new ones. @param {string} name */
  reopen(name) {
    const { title } = this.host.catalogue.find((model) => model.name === name) ?? { title: name };
    this.replaced = `${title} was replaced by another version, which is shown now.`;
    this.reopening ??= setTimeout(() => {
      this.reopening = undefined;
      if (this.root.isConnected) this.show();
    }, REOPEN_MS);
  }

  /** @param {object} turn @param {Model | null} opened @param {PageText | null} text */
  async drawView(turn, opened, text) {
    const model = (this.named = opened && namedAfter(opened, text?.read));
    const effect = text?.changes ? await effectOf(model, text) : null;
    if (turn !== this.turn) return;
    const shown = effect?.overflows ? { ...text, changes: null } : text;
    let data = null;
    if (Object.hasOwn(this.host.views, this.page)) {
      data = await viewData(this.page, this.reader, model, shown, this.others);
      if (turn !== this.turn) return;
      this.slot.draw(data, apiOf(model));
    }
    this.notices.showProblem(null);
    this.notices.show([...(this.replaced ? [this.replaced] : []), ...(effect && (effect.overflows || !data?.saysChanges) ? [effect.sentence] : []), ...(text ? noticesOf(model, this.state, text) : []), ...this.tooLong()]);
    this.place.dataset.state = "shown";
    if (this.prompt.draft !== null) this.type(this.prompt.draft);
  }

  /** @param {any} error */
  async fail(error) {
    this.place.dataset.state = "failed";
    this.notices.showProblem(error, this.model);
    this.more.show(this.model, this.state, this.changes, null);
    this.host.changed?.(this.state, { model: this.model, text: null });
    this.tryAgain(error, () => this.show());
    if (error instanceof EmptyPrompt) await this.showLastRead(error);
    if (!(error instanceof ApiError)) throw error;
  }

  /** @param {any} error @param {() => void} attempt */
  tryAgain(error, attempt) {
    clearTimeout(this.again);
    if (error instanceof ApiError && !error.isFinal) this.again = setTimeout(() => this.root.isConnected && attempt(), AGAIN_MS);
  }

  /** A prompt was typed. It becomes part of the state once it can be read; until then what was shown stays. @param {string} text */
  async type(text) {
    const { model, turn } = this;
    const typed = (this.typed = {});
    try {
      if (model) await readPrompt(model, text, this.state.get("reads") ?? undefined);
      if (typed !== this.typed || turn !== this.turn) return;
      if (text === this.prompt.text) this.show(); // the one before what couldn't be read
      else this.state.choose("prompt", text);
    } catch (error) {
      if (typed !== this.typed || turn !== this.turn) return;
      this.notices.showProblem(error, this.model);
      this.tryAgain(error, () => typed === this.typed && this.type(text));
      await this.showLastRead(error);
      if (!(error instanceof ApiError)) throw error;
    }
  }

  /** What is shown is the last prompt that could be read, or the first example where nothing was typed. @param {any} error why the present one can't be read */
  async showLastRead(error) {
    const { model, turn } = this;
    const isEmpty = error instanceof EmptyPrompt;
    if (isEmpty && model.card.examples.length && this.lastRead?.model !== model) this.lastRead = { model, text: await textOf(model, new PageState()) };
    if (turn !== this.turn || this.lastRead?.model !== model) return;
    const { text } = this.lastRead;
    if (isEmpty) this.notices.showProblem(null);
    this.notices.show([`${isEmpty ? `${error.message} ` : ""}Shown below is the last prompt that could be read: “${text.prompt}”`]);
    if (!Object.hasOwn(this.host.views, this.page)) return;
    const named = namedAfter(model, text.read);
    const data = await viewData(this.page, this.state, named, { ...text, isOutdated: true }, this.others);
    if (turn === this.turn) this.slot.draw(data, apiOf(named));
  }

  /** The other models there are. */
  get others() {
    const { answers, catalogue } = this.host;
    return { open: (/** @type {string} */ name) => answers.open(name), catalogue };
  }

  /** @param {string} name @param {string | null} [prompt] its first example, if left out */
  chooseModel(name, prompt = null) {
    this.replaced = null;
    this.prompt.text = ""; // what was typed was for the model before
    this.state.choose("model", name, { prompt });
  }

  /** @param {Wish} wish */
  change(wish) {
    if (this.saysFixed()) return;
    try {
      this.becomeChanged(changed(this.changes, wish, this.model.about));
    } catch (error) {
      this.notices.dismissed.clear();
      this.notices.show([/** @type {Error} */ (error).message]);
    }
  }

  /** @returns {Changes} those that the model can be changed by, and what they were */
  get changes() {
    const given = this.state.get("changes") ?? "";
    const now = this.model ? readChanges(given, this.model.about).now : given;
    return { now, before: stepsBefore({ now, before: this.changesBefore.get(this.modelName) ?? [] }) };
  }

  /** @param {Changes} changes */
  becomeChanged({ now, before }) {
    this.changesBefore.set(this.modelName, before);
    this.state.set({ changes: now });
  }

  /** A view asks for another model or prompt. @param {{ model?: string, prompt?: string, [name: string]: any }} chosen */
  choose({ model, prompt, ...others }) {
    if (this.saysFixed()) return;
    if (model) this.chooseModel(model, prompt);
    else this.state.choose("prompt", prompt, others);
  }

  /** Whether model, prompt and changes can't be changed here, which is said then. */
  saysFixed() {
    const isFixed = Boolean(this.host.isBare || this.host.isFixed);
    if (isFixed) this.notices.show(["Model, prompt and changes are fixed at this step."]);
    return isFixed;
  }

  /** @param {string} event @param {any} value */
  receive(event, value) {
    if (event === "change") this.change(value);
    if (event === "choose") this.choose(value);
    if (event !== "navigate") return;
    const { page, ...shown } = value;
    this.state.set(shown);
    this.state.flush();
    this.host.navigate?.(page, this.state);
  }

  /** @returns {string[]} what is said of the link if it has no room for all of the page state */
  tooLong() {
    const missing = calledOf(Object.keys(this.state.addressed(location.search).leftOut));
    return missing.length && this.host.isLinked !== false ? [`Too long for the link: ${missing.join(" and ")}. It is lost when you close this tab.`] : [];
  }

  redraw() {
    this.slot.redraw();
  }

  /** @param {string} text */
  retype(text) {
    if (this.saysFixed()) return;
    this.prompt.put(text);
    this.type(text);
  }

  /** @param {ShellHost["offer"]} offer */
  showOffer(offer) {
    this.offer.hidden = !offer;
    this.offer.replaceChildren();
    if (!offer) return;
    const { title, act, dismissal, dismiss } = offer;
    for (const [words, name, choose] of /** @type {[string, string, () => void][]} */ ([[title, title, act], ["✕", dismissal, dismiss]])) {
      const button = Object.assign(node("button", "", this.offer), { type: "button", textContent: words });
      attribute(button, "aria-label", name);
      button.addEventListener("click", () => {
        this.showOffer(null);
        this.more.button.focus();
        choose();
      });
    }
  }

  noticesDismissed() {
    this.more.button.focus();
    if (this.notices.hosted.length) this.host.noticesRead?.();
  }
}

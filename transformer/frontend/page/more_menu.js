// The menu of the shell: the changes of the model, what is known of it, a link to what is shown, and what a host adds.

import { changesOn } from "../changes.js";
import { attribute, isComposing, node, put, untranslated } from "../dom.js";
import { ChangesMenu } from "./changes_menu.js";
import { factsOf } from "./model_facts.js";
import { kindOf } from "./text_reading.js";
/** @import { Changes } from "../changes.js" */
/** @import { Model } from "./answers.js" */
/** @import { Reader } from "./change_form.js" */
/** @import { PageState } from "./page_state.js" */
/** @import { ListedModel } from "./shell.js" */
/** @import { PageText } from "./text_reading.js" */

const EMBEDS = ["embed", "embed_options"]; // what a page that frames the app adds to its address

/** @typedef {{ title: string, key?: string, act: () => void }} MenuItem key: a shortcut */

export class MoreMenu {
  /** @type {Model | null} */ model = null;

  /**
   * @param {HTMLElement} parent
   * @param {{ become: (changes: Changes) => void, read: Reader, groupOf: (name: string) => ListedModel | undefined, reads: (how: string) => void, tooLong: () => string[] }} host
   *   groupOf: a model's group and its meaning; reads: told how the prompt is to be read, of a model with a chat template; tooLong: what is said if a link has no room for all
   */
  constructor(parent, { become, read, groupOf, reads, tooLong }) {
    this.groupOf = groupOf;
    this.reads = reads;
    this.tooLong = tooLong;
    const place = node("div", "shell-more", parent);
    this.button = Object.assign(node("button", "", place), { type: "button" });
    this.panel = node("div", "shell-menu", place);
    attribute(this.panel, "role", "group");
    attribute(this.panel, "aria-label", "Menu");
    this.button.addEventListener("click", () => this.toggle(Boolean(this.panel.hidden)));
    place.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || isComposing(event) || this.panel.hidden) return;
      event.preventDefault(); // it closes this and nothing else
      this.toggle(false);
      this.button.focus();
    });
    const closeOutside = (event) => {
      if (!place.isConnected) removeEventListener("pointerdown", closeOutside, { capture: true });
      else if (!event.composedPath().includes(place)) this.toggle(false);
    };
    addEventListener("pointerdown", closeOutside, { capture: true });
    const changes = this.section("Changes");
    this.changesTitle = changes.previousElementSibling;
    this.changes = new ChangesMenu(changes, { change: become, read });
    changes.parentElement.addEventListener("toggle", () => this.changes.open());
    this.card = this.section("About this model");
    this.reading = this.section("Read as");
    this.share = this.section("Share");
    this.share.className = "shell-share";
    this.share.parentElement.addEventListener("toggle", () => this.showLink());
    this.others = node("div", "shell-others", this.panel);
    this.toggle(false);
    this.count(0);
  }

  /** A part that unfolds. @param {string} title */
  section(title) {
    const details = node("details", "", this.panel);
    put(node("summary", "", details), title);
    return node("div", "", details);
  }

  /** @param {boolean} isOpen */
  toggle(isOpen) {
    this.panel.hidden = !isOpen;
    attribute(this.button, "aria-expanded", String(isOpen));
    if (isOpen) this.showLink();
  }

  /** @param {MenuItem[]} items of the host @param {{ isLinked: boolean, isFixed: boolean }} options isLinked: whether there is a link to share */
  offer(items, { isLinked, isFixed }) {
    this.share.parentElement.hidden = !isLinked;
    this.changesTitle.parentElement.hidden = isFixed;
    this.reading.inert = isFixed;
    this.others.replaceChildren(...items.map(({ title, key, act }) => {
      const button = Object.assign(node("button", "", null), { type: "button", textContent: title });
      if (key) attribute(button, "aria-keyshortcuts", key);
      if (key) button.title = `Key: ${key.toUpperCase()}`;
      button.addEventListener("click", () => {
        this.toggle(false);
        this.button.focus();
        act();
      });
      return button;
    }));
  }

  /** @param {Model | null} model @param {PageState} state @param {Changes} changes @param {PageText | null} text */
  show(model, state, changes, text) {
    this.count(changesOn(changes.now).length);
    if (!model) return;
    const { about: { attentions }, about, card: { opening, summary } } = model;
    const { layer, head } = state.layerAndHead(opening);
    const module = attentions[kindOf(attentions, state.get("attention"))]?.modules[layer] ?? null;
    this.changes.show({ changes, model: about, looked: { module, head }, length: text ? (text.source.length || text.tokens.length) : 0 });
    this.showReading(model, state.get("reads") ?? "chat", text);
    if (model === this.model) return;
    this.model = model;
    this.card.replaceChildren();
    put(node("p", "", this.card), summary);
    const rows = node("dl", "", this.card);
    for (const [label, value] of factsOf(model)) {
      put(node("dt", "", rows), label);
      put(untranslated(node("dd", "", rows)), value);
    }
    const { group, meaning } = this.groupOf(model.name) ?? {};
    if (meaning) put(node("p", "", this.card), `${group}: ${meaning}`);
  }

  /** How a model that was tuned to answer reads the prompt, and what it then reads. @param {Model} model @param {string} how @param {PageText | null} text */
  showReading({ card: { chats = false } }, how, text) {
    this.reading.parentElement.hidden = !chats;
    if (!chats) return;
    const select = node("select", "", null);
    attribute(select, "aria-label", "The prompt is read as");
    select.replaceChildren(new Option("A chat", "chat"), new Option("Plain text", "plain"));
    select.value = how;
    select.addEventListener("change", () => this.reads(select.value));
    this.reading.replaceChildren(select);
    if (!text?.read.chat) return;
    put(node("p", "", this.reading), "This model was tuned on conversations. It reads this, and goes on with the assistant's turn; names in ⟨…⟩ are single tokens of its own:");
    put(untranslated(node("pre", "", this.reading)), text.read.chat.replaceAll("<|", "⟨").replaceAll("|>", "⟩"));
  }

  /** @param {number} count of the changes that are on */
  count(count) {
    put(this.button, count ? `⋯ ${count}` : "⋯");
    attribute(this.button, "aria-label", count ? `Menu, ${count} ${count === 1 ? "change" : "changes"}` : "Menu");
    put(this.changesTitle, count ? `Changes (${count})` : "Changes");
  }

  /** The link to what is shown now. */
  showLink() {
    this.share.replaceChildren();
    if (this.panel.hidden || !(/** @type {HTMLDetailsElement} */ (this.share.parentElement).open)) return;
    put(node("p", "", this.share), "Anyone with this link sees this page as you do.");
    if (this.model?.isOwn) put(node("p", "", this.share), "The link also gives access to your model.");
    for (const sentence of this.tooLong()) put(node("p", "", this.share), sentence);
    const status = node("p", "", null);
    attribute(status, "role", "status");
    const link = new URL(location.href);
    for (const name of EMBEDS) link.searchParams.delete(name);
    const field = Object.assign(untranslated(node("input", "", this.share)), { type: "text", readOnly: true, value: link.href });
    attribute(field, "aria-label", "Link");
    const embedded = `${link.href}${link.search ? "&" : "?"}embed=true`;
    for (const [title, copied] of [["Copy link", link.href], ["Copy link to embed", embedded]]) {
      const button = Object.assign(node("button", "", this.share), { type: "button", textContent: title });
      button.addEventListener("click", () => {
        field.value = copied;
        field.select();
        put(status, document.execCommand("copy") ? "Copied." : "Copy the link above."); // over plain HTTP there is no navigator.clipboard
      });
    }
    this.share.append(status);
  }
}

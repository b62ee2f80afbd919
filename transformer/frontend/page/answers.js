// What answers a page's questions about models: the server, over HTTP, or (in site/models.js) a worker of this tab. A page doesn't
// know which.

import { Api } from "../api.js";
import { BrowserFirstApi } from "../browser_first.js";
import { readWith, tokenizerOf } from "./text_reading.js";
/** @import { AboutModel } from "../engine/live_model.js" */
/** @import { ReadText } from "./text_reading.js" */
/** @import { ApiOf } from "./view_frame.js" */

/**
 * @typedef {object} Card what a visitor should know of a model
 * @property {string} title
 * @property {string} summary
 * @property {string[]} examples prompts that suit it
 * @property {{ layer: number, head: number, attention: string } | null} opening the head to show first
 * @property {boolean} [chats] whether it was tuned to answer, and has a chat template
 * @property {string} [language]
 * @property {string} [task]
 * @property {Record<string, any>} [corpus] the text it was trained on
 * @property {Record<string, any>} [training] steps, seconds, machine, and the command that trains it again
 * @property {number} [parameters]
 * @property {number | null} [train_loss] nats per token, as validation_loss
 * @property {number | null} [validation_loss]
 * @property {number | null} [accuracy] from 0 to 1
 *
 * @typedef {object} Model
 * @property {string} name
 * @property {string | null} version
 * @property {string} [fileName] what files of it are called, where that isn't its name
 * @property {boolean} [isLarge] whether many passes of it take long
 * @property {boolean} isOwn whether it is a visitor's own, whose name is its key
 * @property {AboutModel} about
 * @property {Card} card
 * @property {string[]} [newWords] that the vocabulary lacks, and whose places in it have their names
 * @property {(text: string, reads: string, newWords?: string[]) => Promise<ReadText> | ReadText} read reads: "chat" or "plain", of a model that was tuned to answer
 * @property {ApiOf} apiOf
 *
 * @typedef {object} Answers
 * @property {(name: string) => Promise<Model>} open rejects with an ApiError
 */

const OWN = "own"; // what requests call a visitor's own model, whose key goes in a header

/** Over HTTP; of a small model this tab computes what follows the first picture. @implements {Answers} */
export class HttpAnswers {
  /**
   * @param {{ base?: URL, isOwn?: (name: string) => boolean, replaced?: (name: string) => void }} [options] base: where the API is;
   *   replaced: told of a model that has another version than the opened one, which has been forgotten
   */
  constructor({ base = undefined, isOwn = () => false, replaced = () => {} } = {}) {
    this.base = base;
    this.isOwn = isOwn;
    this.replaced = replaced;
    /** @type {Map<string, Promise<Model>>} */
    this.opened = new Map();
  }

  /** @param {string} name @returns {Promise<Model>} */
  open(name) {
    if (!this.opened.has(name)) {
      const opening = this.begin(name, () => {
        if (this.opened.get(name) !== opening) return; // one of several questions has said so
        this.opened.delete(name);
        this.replaced(name);
      });
      this.opened.set(name, opening);
      opening.catch(() => this.opened.delete(name));
    }
    return this.opened.get(name);
  }

  /** @param {string} name @param {() => void} replaced */
  async begin(name, replaced) {
    const isOwn = this.isOwn(name);
    const options = { token: isOwn ? name : null, base: this.base, replaced };
    const called = isOwn ? OWN : name;
    const { version, about, card, tokenizer, file_name: fileName, in_browser: isSmall, is_large: isLarge } = await new Api({}, options).json(`models/${encodeURIComponent(called)}`);
    const asked = { model: called, version: isOwn ? null : version };
    const own = tokenizer && tokenizerOf(tokenizer, about);
    return {
      name, version, isOwn, about, card, fileName,
      read: (text, reads, newWords = []) => (own ? readWith(own, text, newWords) : new Api(asked, options).json("tokens", { text, reads, new_words: newWords })),
      isLarge,
      apiOf: (request, { computed, onServer = false }) => (isSmall && !onServer ? new BrowserFirstApi({ ...asked, ...request }, { ...options, computed }) : new Api({ ...asked, ...request }, options)),
    };
  }
}

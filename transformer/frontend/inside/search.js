// Searches tensors by name, as a combobox (WAI-ARIA Authoring Practices).

import { attribute, isComposing, node, put, putBoth } from "../dom.js";

const MOST = 40; // names in the list at once

/** The names that have every part of what was typed, or whose plain names do, those that begin with it first. */
export function matching(names, typed, plain = (name) => name) {
  const parts = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = names.filter((name) => parts.every((part) => `${name} ${plain(name)}`.toLowerCase().includes(part)));
  const rank = (name) => {
    const lower = name.toLowerCase();
    if (lower === typed.trim().toLowerCase()) return 0;
    if (parts.length && lower.startsWith(parts[0])) return 1;
    return parts.length && lower.split(/[._]/).includes(parts[0]) ? 2 : 3; // a whole word of the name
  };
  return matches.sort((one, other) => rank(one) - rank(other)); // stable: the order of the pass
}

let made = 0;

export class Search {
  /** @type {(name: string) => string} */ plain;

  /** open(name): called with the name that was chosen. */
  constructor(parent, open) {
    this.names = [];
    this.open = open;
    this.list = [];
    this.at = -1;
    const id = `search-names-${made++}`;
    const root = (this.root = node("div", "numbers search", parent));
    const label = node("label", "", root);
    put(node("span", "", label), "Find a tensor ");
    const input = (this.input = node("input", "", label));
    Object.assign(input, { type: "text", autocomplete: "off", spellcheck: false, placeholder: "Find a tensor", title: "Type parts of its name, for example layer 1 queries, or hook_q" });
    const about = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id, autocapitalize: "off" };
    for (const [name, value] of Object.entries(about)) attribute(input, name, value);
    this.options = node("ul", "", root);
    this.options.id = id;
    attribute(this.options, "role", "listbox");
    attribute(this.options, "aria-label", "Tensors");
    this.status = node("p", "status", root);
    attribute(this.status, "role", "status");
    this.options.hidden = true;
    input.addEventListener("input", () => this.search());
    input.addEventListener("click", () => this.search());
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => this.onKey(event));
    this.options.addEventListener("pointerdown", (event) => event.preventDefault()); // the input keeps the focus
    this.options.addEventListener("click", (event) => {
      /** @type {HTMLElement | null} */
      const option = /** @type {Element} */ (event.target).closest("[role=option]");
      if (option) this.choose(option.dataset.name);
    });
  }

  /** Other names, of another model. plain(name): what it is called in words. */
  offer(names, plain) {
    Object.assign(this, { names, plain });
    this.close();
  }

  search() {
    const matches = matching(this.names, this.input.value, this.plain);
    this.list = matches.slice(0, MOST);
    this.options.replaceChildren(...this.list.map((name, at) => {
      const option = node("li", "");
      option.id = `${this.options.id}-${at}`;
      option.dataset.name = name;
      attribute(option, "role", "option");
      putBoth(option, this.plain(name), name);
      return option;
    }));
    const more = matches.length - this.list.length;
    put(this.status, !matches.length ? "No tensor has such a name." : more ? `${matches.length} tensors; the first ${MOST} are listed.` : "");
    this.options.hidden = !matches.length;
    attribute(this.input, "aria-expanded", String(matches.length > 0));
    this.setActive(this.input.value.trim() && matches.length ? 0 : -1);
  }

  setActive(at) {
    this.at = at;
    [...this.options.children].forEach((option, which) => attribute(option, "aria-selected", String(which === at)));
    if (at < 0) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    attribute(this.input, "aria-activedescendant", `${this.options.id}-${at}`);
    this.options.children[at].scrollIntoView({ block: "nearest" });
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return;
    const isOpen = !this.options.hidden;
    const count = this.list.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) this.search();
      else this.setActive((this.at + (event.key === "ArrowDown" ? 1 : count + (this.at < 0 ? 0 : -1))) % count);
    } else if (event.key === "Enter" && isOpen && this.at >= 0) {
      event.preventDefault();
      this.choose(this.list[this.at]);
    } else if (event.key === "Escape" && (isOpen || this.input.value)) {
      event.stopPropagation(); // it closes the list, and leads nowhere
      if (isOpen) this.close();
      else this.input.value = "";
    }
  }

  choose(name) {
    this.input.value = "";
    this.close();
    this.open(name);
  }

  close() {
    this.options.hidden = true;
    put(this.status, "");
    attribute(this.input, "aria-expanded", "false");
    this.setActive(-1);
  }
}

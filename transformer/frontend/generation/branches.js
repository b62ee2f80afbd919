// Lists the branches of a prompt, and compares two of them from where they differ.
import { arrange, attribute, button, node, put } from "../dom.js";
import { counted, percent } from "../number_format.js";
import { dress } from "./token_strip.js";

export class Branches {
  /** @type {HTMLElement} */ root;
  /** @type {HTMLElement} */ list;
  /** @type {HTMLElement} */ compared;
  /** @type {HTMLElement} */ ownTitle;
  /** @type {HTMLElement} */ ownText;
  /** @type {HTMLElement} */ otherTitle;
  /** @type {HTMLElement} */ otherText;
  /** @type {{ back: (id: number) => void, compare: (id: number | null) => void }} */ on;

  /** on: { back(id), compare(id) }; a null id ends the comparison. */
  constructor({ branches, branchList, compared, ownTitle, ownText, otherTitle, otherText }, on) {
    Object.assign(this, { root: branches, list: branchList, compared, ownTitle, ownText, otherTitle, otherText, on });
    this.items = new Map();
  }

  /** branches: from `Tree.listed`; locked: no branch can be returned to now; comparing: the id of the compared one, or null. */
  show(branches, { locked, comparing }) {
    const hidden = branches.length < 2;
    if (this.root.hidden !== hidden) this.root.hidden = hidden;
    for (const branch of branches) {
      if (!this.items.has(branch.id)) this.items.set(branch.id, this.make(branch.id));
      const made = this.items.get(branch.id);
      put(made.name, `Branch ${branch.id}: ${branch.name}`);
      put(made.text, branch.text);
      put(made.count, `${counted(branch.tokens, "token")}${branch.current ? ", shown" : ""}`);
      attribute(made.item, "aria-current", String(branch.current));
      for (const button of [made.back, made.compare]) attribute(button, "aria-disabled", String(branch.current || locked));
      put(made.compare, comparing === branch.id ? "Close" : "Compare");
      made.branch = { ...branch, locked, isCompared: comparing === branch.id };
    }
    arrange(this.list, branches.map(({ id }) => this.items.get(id).item));
  }

  make(id) {
    const item = node("li", "");
    const [name, text, count] = [node("b", "", item), node("span", "snippet", item), node("span", "count", item)];
    /** @type {Record<string, any>} */
    const made = { item, name, text, count };
    const unless = (act) => () => !made.branch.current && !made.branch.locked && act();
    made.back = button(item, "Return", unless(() => this.on.back(id)));
    made.compare = button(item, "", unless(() => this.on.compare(made.branch.isCompared ? null : id)));
    return made;
  }

  /** own and other: { title, tokens } from the position where they part; null for no comparison. */
  showCompared(own, other) {
    const hidden = !other;
    if (this.compared.hidden !== hidden) this.compared.hidden = hidden;
    if (hidden) return;
    for (const [title, box, side] of [[this.ownTitle, this.ownText, own], [this.otherTitle, this.otherText, other]]) {
      put(title, side.title);
      side.tokens.forEach((token, at) => {
        const span = box.children[at] ?? node("span", "token", box);
        if (span.token === token) return;
        span.token = token;
        dress(span, token);
        span.title = `“${token.label}”, probability ${percent(token.probability)}, rank ${token.rank ?? "–"}`;
        span.classList.toggle("parting", at === 0);
      });
      while (box.children.length > side.tokens.length) box.lastChild.remove();
    }
  }
}

/** The model's mean loss on a branch, in words: "Branch 2 from token 34 on: 1.52 nats per token". */
export function sideTitle(id, first, tokens) {
  const name = `Branch ${id} from token ${first} on`;
  if (!tokens.length) return `${name}: nothing yet`;
  if (tokens.some(({ probability }) => probability === undefined)) return name;
  const nats = tokens.reduce((sum, { probability }) => sum - Math.log(probability), 0) / tokens.length;
  return `${name}: ${nats.toFixed(2)} nats per token`;
}

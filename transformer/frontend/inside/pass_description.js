// Describes the forward pass in words; words that name a layer and the layer highlight each other.

import { attribute, node, put } from "../dom.js";
import { isCausal } from "../attention_config.js";
import { plainName } from "./plain_names.js";

const MOST_NAMED = 8; // blocks in one sentence

const WORDS = {
  embed: (target, whose) => [`${whose} becomes a vector, its `, ["embedding", target], ": the start of its stream."],
  ln_final: (target) => ["The ", ["final norm", target], " normalizes the stream."],
  head: (target) => ["The ", ["prediction head", target], " is one more layer before that."],
  unembed: (target, config) => ["The ", ["unembedding", target], ` turns the stream into a probability ${isCausal(config) ? "for every next token." : "of every token at its position. In training, only masked positions count."}`],
  attn: (target, how) => [["Attention", target], ` reads from other tokens${how}; nothing else does.`],
  cross_attn: (target) => [["Cross-attention", target], " reads from the tokens of the source."],
  mlp: (target) => ["The ", ["feed-forward layer", target], " works on each token alone."],
};
const ABREAST = ["Both read the same stream: neither sees the other’s output."];

export class PassDescription {
  /** events: open(what), hover(id or null). */
  constructor(parent, events) {
    this.parent = parent;
    for (const [kind, isOn] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]]) {
      parent.addEventListener(kind, (event) => events.hover(isOn ? (event.target.closest("[data-id]")?.dataset.id ?? null) : null));
    }
    parent.addEventListener("click", (event) => {
      const open = event.target.closest("[data-open]")?.dataset.open;
      if (open !== undefined) events.open(open);
    });
  }

  /** head: whose arcs are drawn; null for the mean of all. */
  show(structure, focus, pass, head) {
    const key = [focus?.group.id ?? "", focus?.name ?? "", head].join();
    if (pass === this.shown?.pass && key === this.shown.key) return;
    this.shown = { pass, key };
    const list = node("ol", "");
    for (const sentence of focus?.group.kind === "block" ? ofBlock(focus, structure, pass) : ofModel(structure)) this.write(sentence, node("li", "", list));
    this.parent.replaceChildren(list, legend(pass.config, head));
  }

  write(sentence, parent) {
    for (const piece of sentence) {
      if (typeof piece === "string") parent.append(piece);
      else {
        const [text, { id, target }] = piece;
        const word = node("button", "word", parent);
        attribute(word, "data-id", id);
        attribute(word, "data-open", target);
        put(word, text);
      }
    }
  }

  /** Light the words that name a block, one of its sublayers or tensors. */
  light(id) {
    for (const word of this.parent.querySelectorAll(".word")) {
      attribute(word, "data-lit", String(id !== null && (word.dataset.id === id || id.startsWith(`${word.dataset.id}.`))));
    }
  }
}

/** What the colours and the light of the picture mean. */
function legend({ n_heads: heads, residual, norm }, chosen) {
  const words = node("p", "legend");
  words.append("Bright: what reaches the selected token (attention rollout); faded: what hardly does. ");
  if (residual) words.append("⊕ adds to the stream. ");
  if (norm !== "none") words.append("A short grey bar across a line is a norm. ");
  if (heads > 1) words.append(chosen === null ? "A curve’s colour: the head with the largest weight there." : `The curves are those of head ${chosen}.`);
  return words;
}

// From the bottom up; blocks that do the same are named in one sentence.
function ofModel({ stacks, residual, parallel, config }) {
  const sentences = [];
  for (const stack of stacks) {
    const blocks = stack.groups.filter(({ kind }) => kind === "block");
    for (const group of stack.groups) {
      if (group.kind === "embed") sentences.push(WORDS.embed(group, stack.title ? `Each token of the ${stack.title}` : "Each token"));
      if (group === blocks[0]) {
        sentences.push([...(stack.title ? [`In the ${stack.title}, `] : []), ...listed(blocks), doing(blocks.length, residual)]);
        for (const part of group.parts) sentences.push(WORDS[part.kind](part, ", along the curves"));
        if (parallel) sentences.push(ABREAST);
      }
      if (group.kind === "ln_final") sentences.push(WORDS.ln_final(group));
      if (group.kind === "head") sentences.push(WORDS.head(group));
      if (group.kind === "unembed") sentences.push(WORDS.unembed(group, config));
    }
  }
  return sentences;
}

/** The names of blocks; of many the first and the last. */
function listed(blocks) {
  const word = (block) => [block.title, block];
  if (blocks.length > MOST_NAMED) return [word(blocks[0]), ", ", word(blocks[1]), " and so on to ", word(blocks.at(-1))];
  return blocks.flatMap((block, at) => [...(at ? [at === blocks.length - 1 ? " and " : ", "] : []), word(block)]);
}

function doing(count, residual) {
  if (residual) return count > 1 ? " read the stream and add to it:" : " reads the stream and adds to it:";
  return count > 1 ? " put what they compute in the stream's place:" : " puts what it computes in the stream's place:";
}

function ofBlock({ group, name }, { parallel }, pass) {
  const own = group.parts.flatMap(({ names }) => names);
  const sentences = group.parts.map((part) => WORDS[part.kind](part, ""));
  if (parallel) sentences.push(ABREAST);
  const shown = name && own.includes(name) ? [name] : own.filter((id) => /attn_out|hook_mlp_out|pattern|resid/.test(id));
  return [...sentences, ...shown.map((id) => [[plainName(id, pass.config), { id, target: id }], `: ${pass.describe(id).meaning}`])];
}

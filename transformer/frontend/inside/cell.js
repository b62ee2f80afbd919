// Represents one cell of a pass: its index, its equation, and the cells that the equation reads.

/** @import { Config } from "../attention_config.js" */
/** @import { Equation, InsidePass } from "./pass.js" */

/** @type {[RegExp, string][]} */
const TERMS = [ // what a term of the stream is called beside its bars
  [/hook_embed$/, "embedding"], [/hook_pos_embed$/, "position"], [/hook_segment_embed$/, "segment"], [/pos_embed\.weight$/, "position's row"],
  [/hook_resid_/, "stream"], [/cross_attn_out$/, "cross-attention"], [/attn_out$|attn\.hook_out$/, "attention"], [/mlp_out$|mlp\.hook_out$/, "feed-forward"], [/hook_out$/, "normalised"],
];

export class Cell {
  /** @type {InsidePass} */ pass;
  /** @type {string} */ name;
  /** @type {number[]} */ index;
  /** @type {Equation} */ equation;
  /** @type {Config} */ config;
  /** @type {Record<string, number>} */ by; // where it is, by dimension of its equation

  constructor(pass, name, index, equation) {
    Object.assign(this, { pass, name, index, equation, config: pass.config, by: pass.indexByDim(name, index) });
  }

  /** The terms that stand in one role: [{ name, title, reads, values }]. along: a dimension that is read whole. */
  terms(role, along = null) {
    return (this.equation.operands[role] ?? []).map((operand) => {
      const reads = this.pass.reads(this.name, this.index, operand, along);
      const values = Float64Array.from({ length: reads.length }, (_, which) => this.pass.value(operand.name, reads.at(which)));
      const title = TERMS.find(([ending]) => ending.test(operand.name))?.[1] ?? "x";
      return { name: operand.name, title, reads, values };
    });
  }

  /** The same added together: { terms, values, along }. */
  sum(role, along = null) {
    const terms = this.terms(role, along);
    const values = terms[0].values.map((_, which) => terms.reduce((sum, term) => sum + term.values[which], 0));
    return { terms, values, along: this.along(terms[0]) };
  }

  /** Which of a term's numbers stands where the cell does. */
  placeIn({ reads: { shape } }) {
    return shape.reduce((at, [dim, size]) => at * size + this.by[dim], 0);
  }

  /** One number that an operand in this role has for the cell. */
  one(role) {
    const [term] = this.terms(role);
    return { ...term, value: term.values[0] };
  }

  /** What the cells of a term stand for. */
  along({ name, reads: { shape, length, at } }) {
    const axes = shape.map(([dim]) => this.pass.describe(name).dims.indexOf(dim));
    const label = (which) => {
      const index = at(which);
      return this.pass.cellInWords(name, index.map((number, axis) => (axes.includes(axis) ? number : null)));
    };
    return { dim: shape.map(([dim]) => dim).join(", "), length, label };
  }

  /** The number that takes the place of the cell along a dimension of its tensor. */
  links(...terms) {
    return terms.flat().map(({ name, title, reads }) => ({ title, name, at: (which) => reads.at(reads.length === 1 ? 0 : which) }));
  }
}

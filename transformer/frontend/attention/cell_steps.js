// Draws how one attention weight is computed, from its query and key to what the head adds to the residual stream. Each
// step's result is compared with the model's own number.

import { dotProducts, exponentiate, largestAbsolute, largestDifference, norm, weightedValues } from "../arithmetic.js";
import { VectorBars, alike, gutter } from "../vector_bars.js";
import { sayCompared } from "../number_check.js";
import { attribute, button, choice, dataTable, node, offer, put, tableBox } from "../dom.js";
import { Heatmap } from "../heatmap.js";
import { counted, plainNumber } from "../number_format.js";

const FIVE = 5; // significant digits
const TALLEST = 320; // height of the picture of weight × v, in pixels
const STEPS = ["dot", "scale", "cap", "bias", "mask", "exponential", "weight", "values", "output", "stream"];
// The switches that change a step's result; a step that isn't named is changed by any of them.
const CHANGED_BY = { dot: [], scale: ["scale"], cap: ["scale"] };
const UNMASKED = { encoder: "an encoder hides nothing", self: "this layer hides nothing", cross: "nothing of the source is hidden" };

export class CellSteps {
  /** choose: called with { query } or { key }; navigate: opens the cell in the whole pass, null where there is none. */
  constructor(parent, tip, choose, navigate) {
    const header = node("header", "", parent);
    put(node("h2", "", header), "By hand");
    this.selects = {};
    const tools = node("div", "tools", header);
    for (const [name, title] of [["query", "Query (row)"], ["key", "Key (column)"]]) {
      this.selects[name] = choice(tools, title, (value) => choose({ [name]: Number(value) }));
    }
    if (navigate) {
      button(tools, "Open in Inside", navigate).title = "Show this weight in the whole forward pass";
    }
    this.intro = node("p", "sentence", parent);
    const list = node("ol", "steps", parent);
    this.steps = {};
    for (const name of STEPS) {
      const item = node("li", "", list);
      item.dataset.step = name;
      const [text, badge] = [node("p", "text", item), node("p", "badge", item)];
      this.steps[name] = { item, text, badge, drawn: node("div", "drawn", item) };
    }
    this.dotBars = new VectorBars(this.steps.dot.drawn, "Query and key, dimension by dimension", tip);
    this.products = new Heatmap(this.steps.values.drawn, "weight × v for every key", {
      point: (cell) => this.pointAtProduct(cell, tip),
      select: (cell) => choose({ key: cell.row }),
    });
    this.zBars = new VectorBars(this.steps.values.drawn, "z, their sum", tip);
    this.outputBars = new VectorBars(this.steps.output.drawn, "What this head adds", tip);
    this.streamBars = new VectorBars(this.steps.stream.drawn, "The residual stream at the query", tip);
    this.row = node("details", "row", parent);
    put(node("summary", "", this.row), "This row as a table");
    this.table = tableBox(this.row, "This row as a table");
    this.row.addEventListener("toggle", () => this.fillTable());
  }

  begin(pass) {
    for (const [name, which] of [["query", "queries"], ["key", "keys"]]) {
      offer(this.selects[name], pass.labels[which].map((label, at) => [at, `${pass.offsets[which] + at}: ${label}`]), true);
    }
  }

  /** at: { layer, head, row, column }; steps: the head's, null until they arrive. changed: whether they aren't the model's. */
  show(pass, at, steps, changed) {
    this.shown = { pass, at, steps, changed };
    this.selects.query.value = at.row;
    this.selects.key.value = at.column;
    const [query, key] = [pass.token("queries", at.row), pass.token("keys", at.column)];
    put(this.intro, `${pass.uniform ? `What ${query} takes from ${key} and all others that it sees` : `How the query of ${query} weighs the key of ${key}`}, in layer `
      + `${at.layer}, head ${at.head}, and what comes of it.`);
    for (const { item } of Object.values(this.steps)) item.hidden = !steps;
    if (!steps) return;
    const keys = pass.keys;
    const rowOf = (matrix) => matrix?.subarray(at.row * keys, (at.row + 1) * keys);
    const rows = Object.fromEntries(pass.stages.map((name) => [name, rowOf(steps[name])]));
    for (const name of ["dot", "scale", "mask", "exponential", "weight"]) this.steps[name].item.hidden = pass.uniform;
    for (const [name, stage] of [["cap", "capped"], ["bias", "biased"]]) this.steps[name].item.hidden = !rows[stage];
    if (!pass.uniform) this.showScores(pass, at, rows);
    this.showValues(pass, at, rows.weights);
    if (this.row.open) this.fillTable();
  }

  draw() {
    for (const view of [this.dotBars, this.products, this.zBars, this.outputBars, this.streamBars]) {
      view.refresh();
      view.draw();
    }
  }

  showScores(pass, { layer, head, row, column }, rows) {
    const d = pass.width;
    const [q, k] = [["q", row], ["k", column]].map(([name, position]) =>
      pass.start(layer, head, name).subarray(position * d, (position + 1) * d));
    const products = q.map((value, at) => value * k[at]);
    this.dotBars.show([...alike([{ name: "q", values: q }, { name: "k", values: k }]), { name: "q × k", values: products, limit: largestAbsolute(products) }]);
    const n = (value) => plainNumber(value, FIVE);
    const { raw, scaled, capped, biased, masked, weights } = rows;
    const own = (name) => pass.own(layer, name, `[${head}, ${row}]`);
    this.say("dot", `q · k: the sum of the ${counted(d, "product")} = ${n(raw[column])}`, [raw, own("raw")]);
    const divided = scaled[column] === raw[column] && pass.left(layer, this.shown.changed).includes("scale");
    this.say("scale", divided ? "÷ √d_head: left out" : pass.undivided ? "÷ √d_head: this model leaves it out"
      : `÷ √d_head: ${n(raw[column])} ÷ √${d} = ${n(raw[column])} ÷ ${n(Math.sqrt(d))} = ${n(scaled[column])}`, [scaled, own("scaled")]);
    if (capped) {
      this.say("cap", `cap · tanh(score ÷ cap): ${pass.cap} × tanh(${n(scaled[column])} ÷ ${pass.cap}) = ${n(capped[column])}`, [capped, own("capped")]);
    }
    if (biased) this.say("bias", this.biasInWords(pass, { layer, head, row, column }, (capped ?? scaled)[column], biased[column]));
    const hidden = masked[column] === -Infinity;
    this.say("mask", this.maskInWords(pass, { layer, row, column }, hidden, n(masked[column])), [masked, own("masked")]);
    const exponentials = new Float64Array(masked.length);
    const { maximum, sum } = exponentiate(masked, exponentials);
    this.say("exponential", hidden ? "exp(−∞) = 0"
      : `exp(score − the row's largest) = exp(${n(masked[column])} − ${n(maximum)}) = ${n(exponentials[column])}`);
    const seen = masked.reduce((count, score) => count + (score === -Infinity ? 0 : 1), 0);
    this.say("weight", `÷ the sum of the row's ${counted(seen, "exponential")}: ${n(exponentials[column])} ÷ ${n(sum)} = ${n(sum > 0 ? exponentials[column] / sum : 0)}, `
      + `the weight${this.byHand(pass, layer, head, row, weights[column])}`, [weights, own("weights")]);
  }

  /** Why a key is hidden or isn't. score: the one that is kept. */
  maskInWords(pass, { layer, row, column }, hidden, score) {
    const left = pass.left(layer, this.shown.changed);
    if (left.includes("mask")) return "+ mask: left out, so the score stays";
    if (!pass.hasMask(layer, left)) return `No mask: ${UNMASKED[pass.kind]}. The score stays ${score}`;
    const far = pass.isCausal(layer) ? "is too far before the query" : `is ${pass.window(layer)} or more positions away from the query`;
    if (hidden) return `+ mask: the key ${pass.isCausal(layer) && column > row ? "comes after the query" : far}, so its score becomes −∞`;
    return `+ mask: the key is ${pass.isCausal(layer) ? "not after the query" : `fewer than ${pass.window(layer)} positions away`}, so the score stays ${score}`;
  }

  /** The bias that is added to a score for its key's distance. */
  biasInWords(pass, { layer, head, row, column }, score, biased) {
    if (pass.left(layer, this.shown.changed).includes("positions")) return "+ position bias: left out, so the score stays";
    const n = (value) => plainNumber(value, FIVE);
    const away = Math.abs(row - column);
    const cost = pass.biasOf(layer, head)(row, column);
    const why = pass.bias.slopes ? `−slope × distance, −${n(pass.bias.slopes[head])} × ${away} = ${n(cost)}` : `what was learned for this distance, ${n(cost)}`;
    return `+ position bias: ${why}; ${n(score)} ${cost < 0 ? `− ${n(-cost)}` : `+ ${n(cost)}`} = ${n(biased)}`;
  }

  /** What became of a weight when weights of its row were set by hand. */
  byHand(pass, layer, head, row, weight) {
    const words = pass.setBy(layer, "weights", head, row);
    return words.length ? `. Then the row was set by hand (${words.join("; ")}), and the weight is ${plainNumber(weight, FIVE)}` : "";
  }

  showValues(pass, { layer, head, row, column }, weights) {
    const d = pass.width;
    const v = pass.start(layer, head, "v");
    const { products, z } = weightedValues(weights, v, d);
    // Hidden keys add nothing; −∞ is drawn as hidden.
    const open = pass.left(layer, this.shown.changed).includes("mask");
    const drawn = products.map((product, at) => (open || pass.visible(layer, row, Math.floor(at / d)) ? product : -Infinity));
    const pitch = Math.min(Math.max(TALLEST / pass.keys, 2), 16);
    this.products.show({
      values: drawn, rows: pass.keys, columns: d, rowLabels: pass.labels.keys, columnLabels: null, kind: "scores",
      limit: largestAbsolute(products) || 1, pitch, tallest: TALLEST, gutter: gutter(), // so that its columns stand above z's bars
    }, null);
    this.products.mark({ row: column, column: null }, null);
    this.weighed = { products, d };
    const setBy = pass.setBy(layer, "z", head, row);
    const own = pass.own(layer, "z", `[${row}, ${head}]`);
    const rows = [{ name: "z", values: z, limit: largestAbsolute(z) }];
    const isSet = setBy.length > 0 && own !== undefined && !this.shown.changed.length;
    if (isSet) rows.push({ name: "as set", values: own, limit: Math.max(largestAbsolute(z), largestAbsolute(own)) });
    this.zBars.show(rows);
    this.say("values", `weight × v for every key: a row for each key and ${counted(d, "column")}, one for each dimension. Added up, they are z, what `
      + "this head found.", [z, own], setBy);
    const out = pass.projection(layer, head);
    for (const name of ["output", "stream"]) this.steps[name].item.hidden = !out;
    if (out) this.showOutput(pass, { layer, head, row }, dotProducts(isSet ? own : z, out, z.length));
  }

  showOutput(pass, { layer, head, row }, result) {
    const n = (value) => plainNumber(value, 4);
    this.outputBars.show([{ name: "z · W_O", values: result, limit: largestAbsolute(result) }]);
    this.say("output", `z · W_O: through this head's ${counted(pass.width, "column")} of W_O z becomes ${counted(result.length, "number")}, the size of the residual stream.`,
      [result, pass.own(layer, "result", `[${row}, ${head}]`)], pass.setBy(layer, "result", head, row));
    const [before, ...around] = ["before", "after", "out"].map((name) => pass.around(layer, name, row));
    // In a redrawn picture the head adds something else than in the pass, and so does the sum over heads.
    const own = this.shown.changed.length ? pass.own(layer, "result", `[${row}, ${head}]`) : result;
    const isNormalised = Boolean(pass.names[layer].given); // whether the sum over heads is normalised before it is added
    if (isNormalised) {
      this.showNormalised(pass, { layer, row, head }, { result, own, before, after: around[0], out: around[1] });
      return;
    }
    const [after, all] = around.map((values) => values && own && Float64Array.from(values, (value, at) => value + result[at] - own[at]));
    this.steps.stream.item.hidden = !all;
    if (!all) return;
    const rows = [{ name: "this head", values: result }, { name: "all heads", values: all }];
    if (before) rows.unshift({ name: "before", values: before });
    if (after) rows.push({ name: "after", values: after });
    this.streamBars.show(alike(rows));
    const [changedOut, changedAfter] = ["out", "after"].map((name) => pass.changed.setBy(pass.names[layer][name], null, row));
    const { attention_bias: bias, attention_out_bias: outBias } = pass.config;
    const [adds, added] = this.shown.changed.length ? ["Redrawn, this head would add", "would add"] : ["This head adds", "adds"];
    const others = [pass.heads > 1 ? "the other heads" : "", outBias ?? bias ? "the bias" : ""].filter(Boolean).join(" and ");
    const share = `${adds} a vector of length ${n(norm(result))}; ${others && `with ${others}, `}attention ${added} ${n(norm(all))}`
      + (changedOut.length ? ` (set by: ${changedOut.join("; ")})` : "");
    if (!before || !after) {
      this.say("stream", pass.config.parallel_residual ? `${share}. The feed-forward layer adds to the stream at the same time.`
        : `${share}. This model has no residual connection: that is all that goes on.`);
      return;
    }
    const sum = Float64Array.from(before, (value, at) => value + all[at]);
    this.say("stream", `The residual stream of ${pass.token("queries", row)} has length ${n(norm(before))} before. ${share}, and it ${this.shown.changed.length ? "would have" : "has"} length `
      + `${n(norm(after))} after.`, [sum, after], changedAfter);
  }

  /** The same where the sum over heads is normalised, so that a head's output isn't its share of what is added. */
  showNormalised(pass, { layer, row, head }, { result, own, before, after, out }) {
    const n = (value) => plainNumber(value, 4);
    const given = pass.around(layer, "given", row);
    this.steps.stream.item.hidden = !given || !own;
    if (this.steps.stream.item.hidden) return;
    const all = Float64Array.from(given, (value, at) => value + result[at] - own[at]);
    const isRedrawn = this.shown.changed.length > 0;
    const rows = [{ name: "this head", values: result }, { name: "all heads", values: all }];
    if (!isRedrawn) rows.push({ name: "normalised", values: out }, { name: "before", values: before }, { name: "after", values: after });
    this.streamBars.show(alike(rows));
    const share = `Layer ${layer}, head ${head} ${isRedrawn ? "would give" : "gives"} a vector of length ${n(norm(result))}, and all of attention ${n(norm(all))}.`;
    if (isRedrawn) {
      this.say("stream", `${share} A norm follows before it is added to the stream.`);
      return;
    }
    const sum = Float64Array.from(before, (value, at) => value + out[at]);
    this.say("stream", `${share} A norm makes ${n(norm(out))} of that, which is added: the residual stream of ${pass.token("queries", row)} has length `
      + `${n(norm(before))} before and ${n(norm(after))} after.`, [sum, after], pass.changed.setBy(pass.names[layer].after, null, row));
  }

  /**
   * A step's sentence, and whether its result is the model's: found and own are rows of numbers. An intervention that set the
   * result is named instead.
   */
  say(name, text, compared, setBy = []) {
    const { text: words, badge } = this.steps[name];
    put(words, text);
    badge.hidden = !compared;
    if (!compared) return;
    const [computed, own] = compared;
    badge.hidden = !own && this.shown.pass.isComplete;
    if (badge.hidden) {
      put(badge, "");
      return;
    }
    const changed = this.shown.changed.some((rule) => CHANGED_BY[name]?.includes(rule) ?? true);
    if (own && !changed) {
      sayCompared(badge, largestDifference(computed, own), largestAbsolute(own), setBy, this.shown.pass.rounding);
      return;
    }
    attribute(badge, "data-state", changed ? "changed" : "waiting");
    put(badge, changed ? "not what the model computed" : "comparing with the model …");
  }

  pointAtProduct(cell, tip) {
    this.products.mark({ row: this.shown.at.column, column: null }, cell);
    if (!cell) {
      tip.hide();
      return;
    }
    const { pass } = this.shown;
    const bounds = this.products.marks.getBoundingClientRect();
    const { plotArea } = this.products;
    tip.showAt(bounds.left + plotArea.left + (cell.column + 0.5) * plotArea.cellWidth, bounds.top + plotArea.top + cell.row * plotArea.cellHeight, [
      `key ${pass.token("keys", cell.row)}, dimension ${cell.column}`,
      `weight × v: ${plainNumber(this.weighed.products[cell.row * this.weighed.d + cell.column], FIVE)}`,
    ]);
  }

  fillTable() {
    const { pass, at, steps } = this.shown ?? {};
    if (!this.row.open || !steps) return;
    const names = pass.uniform ? ["weights"] : pass.stages;
    const titles = { raw: "q · k", scaled: "÷ √d_head", capped: "cap", biased: "+ position bias", masked: "+ mask", weights: "weight" };
    const rows = pass.labels.keys.map((label, key) => (
      [String(pass.offsets.keys + key), label, ...names.map((name) => plainNumber(steps[name][at.row * pass.keys + key], FIVE))]));
    this.table.replaceChildren(dataTable(["position", "key", ...names.map((name) => titles[name])], rows));
  }
}

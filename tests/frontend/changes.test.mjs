// Tests a visitor's changes of a model: added, set anew, turned off, edited, undone, and read from a link.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { changed, changedSentence, changesOn, readChanges, stepsBefore, withoutEffect } from "../../transformer/frontend/changes.js";
import { problemOf } from "../../transformer/frontend/intervention_checks.js";
import { FIELDS, KINDS, codeOf, inWords } from "../../transformer/frontend/intervention_codes.js";
import { othersOf, targetsOf, wheres } from "../../transformer/frontend/page/change_options.js";

const POINTS = { "blocks.0.attn.hook_z": ["pos", "head", "d_head"], "blocks.0.attn.hook_pattern": ["head", "query", "key"], "blocks.0.hook_mlp_out": ["pos", "d_model"], "blocks.0.attn.hook_mask": ["query", "key"] };
const model = {
  config: { architecture: "decoder-only", n_heads: 2, d_model: 4, context_length: 8, vocab_size: 9 },
  equations: [...Object.entries(POINTS), ["logits", ["pos", "vocab"]]].map(([name, dims]) => ({ name: String(name), dims: /** @type {string[]} */ (dims) })),
};
const head = (number, factor) => `scale~blocks.0.attn.hook_z~${number}~~${factor}`;
const weight = (value, renormalised = 1) => `weigh~blocks.0.attn.hook_pattern~0~3~1~${value}~${renormalised}`;
const after = (now, ...wishes) => wishes.reduce((changes, wish) => changed(changes, wish, model), { now, before: [] }).now;

test("a later change that differs by its dials alone takes the place of the earlier, and is on", () => {
  assert.equal(after("", { add: [head(0, 0.5)] }, { add: ["without~mask~"] }, { add: [head(0, 0.7)] }), `${head(0, 0.7)}!without~mask~`);
  assert.equal(after(`-${head(0, "0.5")}`, { add: [head(0, 2)] }), head(0, "2.0"));
  assert.equal(after(weight(0.5), { add: [weight("0.0", 0)] }), weight("0.0", 0));
  assert.equal(after(head(0, 0.5), { add: [head(1, 0.5), "mean~blocks.0.attn.hook_z~0~"] }).split("!").length, 3);
});

test("changes are taken back, turned off and on, edited in their place, and each step is undone", () => {
  const both = `${head(0, 0.5)}!${head(1, 0.5)}`;
  assert.equal(after(both, { remove: [head(0, 0.5)] }), head(1, 0.5));
  assert.equal(after(both, { toggle: 1 }), `${head(0, 0.5)}!-${head(1, 0.5)}`);
  assert.equal(after(both, { toggle: 1 }, { toggle: 1 }), both);
  assert.equal(after(`-${both}`, { replace: [0, "mean~blocks.0.attn.hook_z~0~"] }), `-mean~blocks.0.attn.hook_z~0~!${head(1, 0.5)}`);
  assert.equal(after(both, { clear: true }), "");
  assert.equal(after(both, { clear: true }, { add: [head(0, 2)] }, { undo: true }, { undo: true }, { undo: true }), both);
  assert.deepEqual(changed({ now: both, before: [] }, { remove: ["without~mask~"] }, model), { now: both, before: [] }, "what changes nothing is no step");
  const [one, two] = both.split("!");
  for (const [now, before, left] of /** @type {[string, string[], string[]][]} */ ([["", [""], []], [one, ["", one, one], [""]], [one, ["", two], ["", two]]])) {
    assert.deepEqual(stepsBefore({ now, before }), left, "what the tour has taken back needs no undo");
  }
  assert.deepEqual(changesOn(after(both, { toggle: 0 })), [head(1, 0.5)]);
});

test("what can't be is said in a sentence, and nothing is changed", () => {
  const two = { now: `${head(0, 0.5)}!${head(1, 0.5)}`, before: [] };
  const full = { now: Array.from({ length: 24 }, (_, position) => `mean~blocks.0.hook_mlp_out~~${position}`).join("!"), before: [] };
  for (const [changes, wish, sentence] of /** @type {[any, any, string][]} */ ([
    [two, { add: [head(7, 0)] }, "This change wasn't added: blocks.0.attn.hook_z has no head 7."],
    [two, { add: [head(0, 21)] }, "This change wasn't added: the factor is from −20 to 20."],
    [two, { replace: [1, head(0, 2)] }, "The change wasn't edited: another change in the list affects the same part."],
    [two, { add: [`from~blocks.0.hook_mlp_out~~~${"1.".repeat(2999)}1~`] }, "This change wasn't added: the other prompt has 3000 tokens, and this model reads 8."],
    [full, { add: [head(0, 1)] }, "This change wasn't added: at most 24 changes can be made at once."],
  ])) assert.throws(() => changed(changes, wish, model), { message: sentence });
});

test("of a link, what can't be read or done with the model is left out with a sentence", () => {
  assert.deepEqual(readChanges(null, model), { now: "", problems: [] });
  assert.deepEqual(readChanges(`-${head(0, 0)}!${head(0, 0.5)}!without~mask~`, model), { now: `${head(0, 0.5)}!without~mask~`, problems: [] });
  const { now, problems } = readChanges(`${head(9, 0)}!${head(1, 0)}!nonsense!scale~a~b`, model);
  assert.equal(now, head(1, "0.0"));
  assert.deepEqual(problems, ["This change of the model is left out: layer 0, head 9 ablated. Reason: blocks.0.attn.hook_z has no head 9.", "2 more are left out, too."]);
  assert.equal(after(`nonsense!${head(1, "0.0")}`, { toggle: 0 }), `-${head(1, "0.0")}`);
  assert.match(readChanges("x".repeat(6001), model).problems[0], /more than 6,000 characters/);
});

test("changes are said in one sentence, and those beyond the text are known", () => {
  const late = "mean~blocks.0.hook_mlp_out~~4";
  assert.equal(changedSentence([head(0, 0), late]), "Changed: layer 0, head 0 ablated; feed-forward of layer 0 at position 4 replaced by its mean.");
  assert.deepEqual(withoutEffect([late, weight(1), "without~mask~", "scale~encoder.hook_embed~~2~0.5"], { tokens: 4, source: 0 }), [late, "scale~encoder.hook_embed~~2~0.5"]);
  assert.deepEqual(withoutEffect([late, "scale~encoder.hook_embed~~2~0.5"], { tokens: 4, source: 3 }), []);
});

test("a model can be changed in every way that its menu offers", () => {
  const models = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "engine", "interventions.json"), "utf-8"));
  for (const each of models) {
    const texts = each.config.architecture === "encoder-decoder" ? { source: [1] } : { source: [] };
    const dials = Object.entries(FIELDS).filter(([, { dial }]) => dial).map(([name, { dial }]) => [name, dial.first]);
    const values = { ...Object.fromEntries(dials), query: 0, key: 0, tokens: [1], against: [1], against_source: [], ...texts };
    for (const { name, points, ofHead, ways } of targetsOf(each)) {
      for (const point of points) {
        for (const { kind, set } of ways) {
          const wanted = KINDS[kind].points ? [{ point, head: ofHead ? each.config.n_heads - 1 : null }] : wheres(each, point).map((where) => ({ rule: point, where }));
          const codes = wanted.map((place) => codeOf(kind, { ...values, ...place, ...set }));
          for (const code of [...codes, ...codes.flatMap(othersOf).map((other) => other.code)]) assert.equal(problemOf(code, each), "", `${name}: ${code}`);
        }
      }
    }
  }
});

test("at one press a change becomes another of its place, never itself", () => {
  const others = (code) => othersOf(code).map(({ words, code: other }) => `${words}: ${inWords(other)}`);
  assert.deepEqual(others(head(0, "0.0")), ["Its opposite: layer 0, head 0 × -1", "Its mean over the text: layer 0, head 0 replaced by its mean"]);
  assert.deepEqual(others("mean~blocks.0.hook_mlp_out~~"), ["Ablate it: feed-forward of layer 0 ablated", "Its opposite: feed-forward of layer 0 × -1"]);
  assert.deepEqual(others(weight(0.3)), ["Its opposite: layer 0, head 0: query 3 gives key 1 the weight 0.7"]);
  assert.deepEqual(others("without~mask~"), []);
});

test("changes that a link couldn't have aren't made", () => {
  const wide = { ...model, config: { ...model.config, context_length: 3000 } };
  const other = (position) => `from~blocks.0.hook_mlp_out~~${position}~${"1.".repeat(1499)}1~`;
  const one = changed({ now: other(0), before: [] }, { add: [head(0, 1)] }, wide);
  assert.throws(() => changed(one, { add: [other(1)] }, wide), { message: "The change wasn't made: all changes together would have more than 6,000 characters." });
});

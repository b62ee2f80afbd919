// Tests what a view is told of a page: from the model, the page state, and what its prompt reads as.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../transformer/frontend/api_error.js";
import { PageState } from "../../transformer/frontend/page/page_state.js";
import { UnreadableText, noticesOf, textOf, unknownSentence } from "../../transformer/frontend/page/text_reading.js";
import { otherPromptOf, viewData } from "../../transformer/frontend/page/view_data.js";

const LETTERS = "abcdefgh";

/** A model of letters whose numbers nobody computes. */
function modelOf({ architecture = "decoder-only", context = 8, layers = 2, heads = 2, mask = null, opening = null, parameters = 1, equations = [], ...more } = {}) {
  const modules = (prefix, name) => ({ modules: Array.from({ length: layers }, (_, layer) => `${prefix}blocks.${layer}.${name}`) });
  const isTranslator = architecture === "encoder-decoder";
  const attentions = isTranslator
    ? { encoder: modules("encoder.", "attn"), decoder: modules("decoder.", "attn"), cross: modules("decoder.", "cross_attn") }
    : layers ? { self: modules("", "attn") } : {};
  return /** @type {any} */ ({
    name: "letters", version: "1", isOwn: false, card: { title: "Letters", summary: "", examples: ["abc"], opening, parameters },
    about: {
      config: { architecture, context_length: context, vocab_size: 10, n_layers: layers, n_heads: heads, d_model: 4 }, attentions, tensors: [], equations: equations.map((name) => ({ name, dims: ["pos", "head", "d_head"] })),
      kinds: [...LETTERS].map((letter) => [letter, letter]), card: { start_tokens: isTranslator ? [9] : [], stop_tokens: [8], mask_token_id: mask },
    },
    read: (text) => {
      const unknown = [...text].flatMap((letter, position) => (LETTERS.includes(letter) ? [] : [{ text: letter, position }]));
      return { tokens: [...text].map((letter) => LETTERS.indexOf(letter)), labels: [...text], unknown, problem: unknown.length ? unknownSentence(unknown) : null, ...more };
    },
    apiOf: () => ({
      async json() {
        throw new ApiError("Nothing is suggested here.");
      },
      async *stream() {
        yield { event: "token", data: { id: 1, kinds: { 1: ["b"] } } };
        yield { event: "token", data: { id: 8, kinds: { 8: ["[end]"] } } };
      },
    }),
  });
}

async function told(page, search, options) {
  const [model, state] = [modelOf(options), new PageState(search)];
  return viewData(page, state, model, await textOf(model, state));
}

test("a prompt is the first example where a state has none; what can't be read is named, and what would do", async () => {
  const text = await textOf(modelOf(), new PageState("model=letters&written=1.2"));
  assert.deepEqual([text.prompt, text.tokens, text.written], ["abc", [0, 1, 2], [1, 2]]);
  const rejected = (search, words, options) => assert.rejects(textOf(modelOf(options), new PageState(search)), (error) => error instanceof UnreadableText && words.test(error.message));
  await rejected("prompt=", /^The prompt is empty/);
  await rejected("prompt=aXbY", /^This model has never seen “X” \(character 2\), “Y” \(character 4\)\. Remove them/);
  await rejected("prompt=abc", /^Two letters/, { problem: "Two letters are too few." });
  await rejected("prompt=abcabcabcabc", /^The source has 12 tokens, and this model reads at most 8\. Take 4 away/, { architecture: "encoder-decoder" });
  await rejected("prompt=abcabcabcabc", /^The prompt has 12 tokens/, { architecture: "encoder-only", mask: 7 });
  assert.match(unknownSentence(Array.from({ length: 8 }, (_, position) => ({ text: "X", position }))), /, and 2 more\. Remove them/);
});

test("what a link has that isn't there is said, and that a long prompt is read from later on", async () => {
  const notices = async (search, options) => {
    const [model, state] = [modelOf(options), new PageState(search)];
    return noticesOf(model, state, await textOf(model, state));
  };
  assert.deepEqual(await notices("layer=1&head=1"), []);
  assert.deepEqual(await notices("layer=9&head=2&step=3"), [
    "There is no layer 9 here; the last one, 1, is shown.", "There is no head 2 here; the last one, 1, is shown.",
    "The text has no predicted token at position 3; the last one is shown.",
  ]);
  assert.deepEqual(await notices("prompt=abcabcabca"), ["The prompt has 10 tokens. This model's context holds 8 and moves by a quarter of that at a time: it reads the last 8."]);
  assert.deepEqual(await notices("prompt=abcabcabca", { layers: 0 }), []); // it reads the last token alone
  assert.deepEqual(await notices("written=1.70"), ["The link's text was left out: it has tokens that this model doesn't know."]);
});

test("Attention reads the prompt, or all of a text; of a long one the end", async () => {
  const { request, about, choices } = await told("Attention", "prompt=abcd&written=1.1.1.1.1.1&layer=1");
  assert.deepEqual([request.tokens, request.begin, about.begin, about.kind], ["0,1,2,3", null, 2, "self"]);
  assert.deepEqual(choices[0].options.map(([value]) => value), ["prompt", "all"]);
  const all = await told("Attention", "prompt=abcd&written=1.1.1.1.1.1&scope=all");
  assert.deepEqual([all.request.tokens, all.request.begin, all.about.offsets], ["2,3,1,1,1,1,1,1", 2, { queries: 2, keys: 2 }]);
  await assert.rejects(told("Attention", "", { layers: 0 }), /no attention/);
});

test("of an encoder–decoder that has written nothing, views show what it would write, and which token each query chose", async () => {
  const cross = await told("Attention", "prompt=abc", { architecture: "encoder-decoder" });
  assert.deepEqual([cross.request.tokens, cross.request.source, cross.about.next], ["9,1", "0,1,2", ["b", "[end]"]]);
  assert.deepEqual([cross.about.kind, cross.about.opening, cross.about.offsets], ["cross", { layer: 1, head: 0 }, { queries: 0, keys: 0 }]);
  assert.match(cross.notes[0], /isn't written yet/);
  const encoder = await told("Attention", "prompt=abc&attention=encoder", { architecture: "encoder-decoder" });
  assert.deepEqual([encoder.about.kind, encoder.about.next], ["encoder", null]);
  const inside = await told("Inside", "prompt=abc&written=1.1", { architecture: "encoder-decoder" });
  assert.deepEqual([inside.request.tokens, inside.notes], ["9,1,1", []]);
  assert.deepEqual(await otherPromptOf(modelOf({ architecture: "encoder-decoder" }), "ab"), { tokens: [9, 1], source: [0, 1] });
});

test("Inside says from where a long text is read, and which logits differ", async () => {
  const { about, notes } = await told("Inside", "prompt=abcabcabcabc");
  assert.deepEqual([about.offset, about.prompt], [4, 12]);
  assert.deepEqual(notes, ["The text is longer than the context, so the model reads its last 8 tokens, from position 4 on. Logits before position 11 came from earlier windows and differ."]);
});

test("Generate begins with the head that the card names; a model that reads both ways fills masks", async () => {
  const opening = { layer: 1, head: 1, attention: "self" };
  const { view, about } = await told("Generate", "written=3", { opening });
  assert.deepEqual([view, about.opening, about.written, about.restored], ["Generate", { layer: 1, head: 1 }, "3", ["", 0]]);
  assert.deepEqual((await told("Generate", "", { opening: { ...opening, layer: 7 } })).about.opening, { layer: 0, head: 1 });
  assert.equal((await told("Generate", "", { architecture: "encoder-only", mask: 7 })).view, "Filling");
});

test("Masks are of the text's end, with the mask and without; of an encoder's text around its mask, as far as masking each token can be paid for", async () => {
  const { request, about, notes } = await told("Masks", "prompt=abcabcabca&changes=without~mask~blocks.0.!scale~blocks.0.attn.hook_z~0~~0.0", { equations: ["blocks.0.attn.hook_mask", "blocks.0.attn.hook_z"] });
  assert.deepEqual([request.changes, about.other.changes], ["scale~blocks.0.attn.hook_z~0~~0.0", "scale~blocks.0.attn.hook_z~0~~0.0!without~mask~"]);
  assert.deepEqual(notes, ["It is changed now: without the causal mask in layer 0. Here the first reading has the whole mask all the same, to compare with."]);
  assert.deepEqual([about.outside, about.before, about.labels.join(""), about.shown, about.most], [2, ["a", "b"], "cabcabca", 8, null]);
  const encoder = { architecture: "encoder-only", mask: 7, context: 20 };
  const masked = await told("Masks", `prompt=${"a".repeat(7)}h${"b".repeat(7)}`, { ...encoder, parameters: 1e12 });
  assert.deepEqual([masked.about.shown, masked.about.first, masked.about.row, masked.about.other.changes], [8, 3, 4, "without~later~"]);
  assert.equal((await told("Masks", "", { ...encoder, layers: 0 })).notes.length, 2);
});

test("Positions show what the model uses, and the end of its text; without a text or a model what needs none", async () => {
  const { request, about } = await told("Positions", "prompt=abcabcabca&changes=without~positions~!scale~blocks.0.attn.hook_z~0~~0.0", { equations: ["hook_pos_embed", "blocks.0.attn.hook_z"] });
  assert.deepEqual([request.tokens, request.begin, request.changes], ["2,0,1,2,0,1,2,0", 2, "scale~blocks.0.attn.hook_z~0~~0.0"]);
  assert.equal(about.text.labels.join(""), "cabcabca");
  assert.deepEqual([about.text.asked, about.text.isCut, about.text.removes, about.model.shuffles], [7, true, true, 8]);
  const translated = await told("Positions", "prompt=abc", { architecture: "encoder-decoder", parameters: 1e9 });
  assert.deepEqual([translated.request.tokens, translated.request.source, translated.about.text.asked, translated.about.model.shuffles], ["9", "0,1,2", 0, 1]);
  const masked = await told("Positions", `prompt=${"a".repeat(60)}h${"b".repeat(9)}`, { architecture: "encoder-only", mask: 7, context: 99 });
  assert.deepEqual([masked.about.text.read.length, masked.about.text.read.indexOf(7), masked.about.text.asked], [48, 38, 38]);
  assert.equal((await viewData("Positions", new PageState(), modelOf(), null)).about.text, null);
  assert.deepEqual((await viewData("Positions", new PageState(), null, null)).about, { model: null, text: null });
});

const HEAD = "scale~blocks.0.attn.hook_z~1~~0.0";
const listed = (name, more = {}) => ({ name, title: name, group: "Texts", examples: [], causal: true, attends: true, corpus: "plays", language: "en", parameters: 9, ...more });

/** What the page What if is told where there are other models, all alike. */
async function whatIf(search, more, catalogue = [listed("letters")]) {
  const options = { equations: ["blocks.0.attn.hook_z", "blocks.0.hook_mlp_out"], ...more };
  const [model, state] = [modelOf(options), new PageState(search)];
  const open = async (name) => ({ ...modelOf(options), name, card: { ...model.card, title: name, corpus: {} } });
  return viewData("What if", state, model, await textOf(model, state), { open, catalogue });
}

test("What if asks about the prompt or all of the text; of an encoder–decoder about any place of what it would write", async () => {
  const { about, choices, saysChanges, models } = await whatIf(`prompt=abcd&written=1.1.1.1.1.1&scope=all&changes=${HEAD}&temperature=0`);
  assert.deepEqual([about.side.tokens, about.side.begin, about.side.position, about.before.length, about.sampling.temperature], [[2, 3, 1, 1, 1, 1, 1, 1], 2, 7, 10, 0]);
  assert.deepEqual([choices.map(({ name }) => name), about.interventions, saysChanges, Object.keys(models)], [["question", "scope"], [{ code: HEAD, words: "layer 0, head 1 ablated" }], true, ["letters"]]);
  const translated = (await whatIf("prompt=abc&place=7", { architecture: "encoder-decoder" }));
  assert.deepEqual([translated.about.side.tokens, translated.about.side.position, translated.about.before, translated.about.whose], [[9, 1, 8], 1, [9, 1], "the unchanged model would write"]);
  assert.deepEqual(translated.choices[1].options, [["0", "After 0 · #9"], ["1", "After 1 · b"]]);
  assert.equal((await whatIf("prompt=abhd", { architecture: "encoder-only", mask: 7 })).about.side.position, 2);
  const bare = await whatIf("prompt=ab", { layers: 0 }, [listed("letters"), listed("other", { attends: true, group: "Tasks" })]);
  assert.deepEqual([bare.about.hasParts, bare.about.able.name], [false, "letters"]);
});

test("prompts that can't be patched into one another get a sentence that says what to do", async () => {
  const problems = {
    "prompt=abcd&other_prompt=ab": "Your prompt has 4 tokens, the other one 2. Patching needs equal lengths. Add 2 to the other prompt, or let one be suggested.",
    "prompt=a&other_prompt=abc": "Your prompt has 1 token, the other one 3. Patching needs equal lengths. Take 2 away from the other prompt, or let one be suggested.",
    "prompt=abc&other_prompt=abc": "Both prompts are the same. Change a word or a letter of the other one.",
    "prompt=abc&other_prompt=": "The other prompt is empty. Type something.",
    "prompt=abc&other_prompt=abX": "The other prompt: This model has never seen “X” (character 3). Remove it, or pick another model.",
    "prompt=abcabcabc&other_prompt=abcabcabd": "Your prompt has 9 tokens, the other one 9, and this model's context holds 8. Shorten them until they fit.",
  };
  for (const [search, problem] of Object.entries(problems)) {
    const { about } = await whatIf(`question=patching&${search}`);
    assert.deepEqual([about.other.problem, about.sides], [problem, null], search);
  }
  const encoder = await whatIf("question=patching&prompt=ahc&other_prompt=hbc", { architecture: "encoder-only", mask: 7 });
  assert.match(encoder.about.other.problem, /^The first masks of the prompts are at different positions/);
  const fits = await whatIf(`question=patching&prompt=abc&other_prompt=abd&changes=${HEAD}!from~blocks.0.hook_mlp_out~~1~0.1.3~`);
  assert.deepEqual([fits.about.sides.map(({ tokens }) => tokens), fits.about.sides[0].changes, fits.about.patched], [[[0, 1, 2], [0, 1, 3]], HEAD, true]);
  const both = await whatIf("question=patching&prompt=abc&other_prompt=abd", { architecture: "encoder-decoder" });
  assert.deepEqual([both.about.stacks, both.about.sides.map(({ tokens, source }) => [tokens, source])], [["encoder", "decoder"], [[[9], [0, 1, 2]], [[9], [0, 1, 3]]]]);
});

test("two prompts, two models, or the model with its changes and without are compared", async () => {
  const prompts = await whatIf(`question=comparison&prompt=abc&other_prompt=de&changes=${HEAD}`);
  assert.deepEqual(prompts.about.sides.map(({ title, tokens, changes }) => [title, tokens, changes]), [["Your prompt", [0, 1, 2], HEAD], ["The other prompt", [3, 4], HEAD]]);
  const changes = await whatIf(`question=comparison&beside=changes&prompt=abc&changes=${HEAD}`);
  assert.deepEqual(changes.about.sides.map(({ title, changes: codes }) => [title, codes]), [["Unchanged", null], ["Changed", HEAD]]);
  assert.equal((await whatIf("question=comparison&beside=changes&prompt=abc")).about.sides, null);
  const catalogue = [listed("letters"), listed("far", { corpus: "laws", parameters: 99 }), listed("near"), listed("masked", { causal: false })];
  const models = await whatIf(`question=comparison&beside=models&prompt=abc&other_model=gone&changes=${HEAD}`, {}, catalogue);
  assert.deepEqual(models.about.sides.map(({ model, title, changes: codes }) => [model, title, codes]), [["letters", "letters", HEAD], ["near", "near", null]]);
  assert.deepEqual(models.about.notes, ["There is no model “gone” to compare with; another is shown.", "The changes apply to the selected model only."]);
  assert.deepEqual(models.choices.at(-1).options.map(([name]) => name), ["near", "far"]);
  const far = await whatIf("question=comparison&beside=models&prompt=abc&other_model=far", {}, catalogue);
  assert.deepEqual(far.about.notes, ["The other model was trained on other data. It may never have seen a text like this prompt."]);
  assert.deepEqual((await whatIf("question=comparison&beside=models&prompt=abc")).about.notes, ["There is no other model here."]);
});

test("a ladder has its rungs in order, and is offered where there is one", async () => {
  const rungs = [listed("ladder-2", { group: "Ladder" }), listed("ladder-1", { group: "Ladder", attends: false }), listed("letters")];
  const { about, models, choices } = await whatIf("question=ladder&prompt=abc", {}, rungs);
  assert.deepEqual([about.rungs, about.tokens, about.problem, Object.keys(models)], [[{ name: "ladder-1", attends: false }, { name: "ladder-2", attends: true }], [0, 1, 2], null, ["letters", "ladder-1", "ladder-2"]]);
  assert.deepEqual(choices.map(({ name }) => name), ["question"]);
  assert.match((await whatIf("question=ladder&prompt=abc")).about.problem, /There is no ladder here/);
  assert.match((await whatIf("question=ladder&prompt=abh", { architecture: "encoder-only", mask: 7 }, rungs)).about.problem, /write a text on/);
  assert.deepEqual((await whatIf("prompt=abc")).choices[0].options.map(([name]) => name), ["ablation", "patching", "comparison"]);
});

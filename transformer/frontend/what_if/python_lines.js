// Writes Python that computes what the page What if shows, from `transformer` alone.

import { KINDS, parsed } from "../intervention_codes.js";
/** @import { Model } from "../page/answers.js" */
/** @import { AblationAbout } from "./ablation.js" */
/** @import { PatchingAbout } from "./activation_patching.js" */
/** @import { Side } from "./data.js" */

const LENGTH = 60; // tokens that are written

/** Both models' next token, and what they write or fill in; and the effect of each part where it is known. @param {AblationAbout} about @param {Model} model @param {{ effect: string, token: number } | null} mapped what the map shows @returns {string[]} */
export function linesOfAblation(about, model, mapped) {
  const { side, before, sampling, room, isCausal, interventions } = about;
  const codes = interventions.map(({ code }) => code);
  const changes = listOf(codes);
  const loads = [...changes.names, "load_checkpoint"];
  const { position } = side;
  const what = isCausal
    ? `from transformer import ${inOrder([...loads, "Sampling", "generate"])}

checkpoint = ${loaded(model)}
text, source = ${list(before)}, ${list(side.source)}
for changes in ([], ${changes.written}):
    steps = list(generate(checkpoint.model, text, source=source or None, max_new_tokens=${Math.max(Math.min(LENGTH, room ?? LENGTH), 1)}, sampling=${samplingOf(sampling)},
                          stop_tokens=${list(model.about.card.stop_tokens)}, interventions=changes))
    values, tokens = steps[0].logits.softmax(-1).topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it says next
    print(checkpoint.tokenizer.decode([step.token_id for step in steps]))  # what it writes`
    : `from transformer import ${inOrder([...loads, "fill_masks", "trace_pass"])}

checkpoint = ${loaded(model)}
text, position = ${list(side.tokens)}, ${position}
for changes in ([], ${changes.written}):
    trace = trace_pass(checkpoint.model, text, interventions=changes)
    values, tokens = trace.tensors["probabilities"][position].topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it predicts there
    steps = fill_masks(checkpoint.model, text, ${model.about.card.mask_token_id}, interventions=changes)
    print([(step.position, checkpoint.tokenizer.label(step.token_id)) for step in steps])  # what it fills in`;
  if (!mapped) return [what];
  const inWindow = listOf(codes, side.begin);
  const effects = {
    loss: "ablated.loss(text)", logit: `ablated.logit(${position}, ${mapped.token})`,
    probability: `100 * (ablated.logits.softmax(-1) - ablated.plain.softmax(-1))[:, ${position}, ${mapped.token}]`,
  }[mapped.effect];
  return [what, `from transformer import ${inOrder([...inWindow.names, "load_checkpoint", "ablation"])}

checkpoint = ${loaded(model)}
text, source = ${list(side.tokens)}, ${list(side.source)}
ablated = ablation(checkpoint.model, text, source${optionOf(inWindow)})
effects = ${effects}
for part, effect in zip(ablated.parts, effects.tolist()):
    print(part, effect)${codes.length ? "  # for what is ablated in every pass, 0" : ""}`];
}

/** The shares of the first stack. @param {PatchingAbout} about @param {Model} model @param {number[]} answers the token that is the prompt's own, and the other's @returns {string[]} */
export function linesOfPatching({ sides: [own, other], stacks: [stack], isCausal }, model, [against, answer]) {
  const kept = listOf((own.changes ?? "").split("!").filter(Boolean));
  const sources = own.source.length ? `, source=${list(other.source)}, corrupted_source=${list(own.source)}, stack='${stack}'` : "";
  return [`from transformer import ${inOrder([...kept.names, "load_checkpoint", "patching"])}

checkpoint = ${loaded(model)}
prompt, other = ${list(own.tokens)}, ${list(other.tokens)}
patched = patching(checkpoint.model, other, prompt, answer=${answer}, against=${against}${sources}${isCausal ? "" : `, position=${own.position}`}${optionOf(kept)})
for site, layers in zip(patched.sites, patched.restored):
    print(site, layers)  # (layer, position): the share that each patch brings of the other answer`];
}

/** What both sides predict, by layer. @param {Side[]} sides @param {Model[]} models @returns {string[]} */
export function linesOfComparison(sides, models) {
  const names = new Set(["load_checkpoint", "logit_lens", "trace_pass"]);
  const rows = sides.map(({ tokens, source, position, changes, begin }, at) => {
    const made = listOf((changes ?? "").split("!").filter(Boolean), begin);
    made.names.forEach((name) => names.add(name));
    return `    (${loaded(models[at])}, ${list(tokens)}, ${list(source)}, ${position}, ${made.written}),`;
  });
  return [`from transformer import ${inOrder(names)}

for checkpoint, text, source, position, changes in [
${rows.join("\n")}
]:
    trace = trace_pass(checkpoint.model, text, source, interventions=changes)
    values, tokens = trace.tensors["probabilities"][position].topk(5)
    print(list(zip(checkpoint.tokenizer.labels(tokens.tolist()), values.tolist())))  # what it says next
    print(logit_lens(trace).logits[:, position].argmax(-1))  # the likeliest token after each layer`];
}

/** Interventions as a list in Python, and the names it needs. @param {string[]} codes @param {number} [begin] of the text's first token, where they count from an earlier one */
function listOf(codes, begin = 0) {
  const made = codes.map((code) => {
    const { kind, values } = parsed(code);
    const [[, first], ...others] = Object.entries(values).filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && !value.length));
    const call = `${KINDS[kind].class}(${[inPython(first), ...others.map(([name, value]) => `${name}=${inPython(value)}`)].join(", ")})`;
    return begin ? `WindowedIntervention(${call}, begin=${begin})` : call;
  });
  const names = new Set(codes.map((code) => KINDS[parsed(code).kind].class));
  if (begin && codes.length) names.add("WindowedIntervention");
  return { names: [...names], written: `[${made.join(", ")}]` };
}

const optionOf = ({ names, written }) => (names.length ? `, interventions=${written}` : "");

const inOrder = (names) => [...new Set(names)].sort().join(", ");

const list = (ids) => `[${ids.join(", ")}]`;

function inPython(value) {
  if (Array.isArray(value)) return `(${value.join(", ")}${value.length === 1 ? "," : ""})`;
  return typeof value === "string" ? `'${value}'` : typeof value === "boolean" ? (value ? "True" : "False") : String(value);
}

/** The model, as a program opens it; with the new words of the page's texts. @param {Model} model */
function loaded({ isOwn, name, newWords = [] }) {
  const named = newWords.length ? `.with_new_words([${newWords.map((word) => JSON.stringify(word)).join(", ")}])` : "";
  return `load_checkpoint(${isOwn ? "'the folder of your model'" : `'checkpoints/${name}'`})${named}`;
}

function samplingOf(sampling) {
  const given = Object.entries(sampling).filter(([, value]) => value !== null);
  return `Sampling(${given.map(([name, value]) => `${name}=${value}`).join(", ")})`;
}

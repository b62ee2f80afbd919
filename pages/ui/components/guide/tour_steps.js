// Lists the six steps of the tour: what to do, where, when it is done, and what the visitor sees then.

/** Of a tour that is begun on another page than its first step's. */
export const ELSEWHERE = {
  title: "Six steps on Generate",
  ask: "The tour takes place on the page Generate, with the model and the prompt that you have now. Press Next to go there, or Skip to stay here.",
  seen: "",
  at: [],
  isDone: () => false,
};

const writtenIn = (strip) => strip?.querySelectorAll(".token.written").length ?? 0;

/**
 * ask: what to do; seen: what the visitor sees once it is done. at: selectors of the control, of which the first found is used;
 * then: the same for what is outlined once the step is done. watch(find, changed): a value to compare, where changed is the codes
 * of the model's interventions; isDone(find, before, now, page): whether the step is done, given that value at its beginning and
 * now. keep: an element that the card doesn't cover either. closes: a button that closes what the step opened. ways: pages to
 * continue with.
 */
export const PATH = [
  {
    title: "Generate text",
    ask: "This page runs a small transformer, which continues the prompt. Press Generate.",
    seen: "The model generates one token at a time; in some models a token is a word, in others a character. The stronger the underline, the higher the token's probability.",
    page: "Generate",
    at: ["live-text: [data-part=generate]"],
    keep: "live-text: .strip",
    then: ["live-text: .strip"],
    watch: (find) => writtenIn(find("live-text: .strip")),
    // A text that has ended can't be continued, and shows what there is to see.
    isDone: (find, before, now) => now > before || (now > 0 && find("live-text: [data-part=generate]").disabled),
  },
  {
    title: "Attention",
    ask: "An attention head looks at some tokens more than at others; orange marks them. Click the generated token, or reach the text with Tab and use the arrow keys.",
    seen: "Orange marks the tokens that one attention head looked at for this prediction. The stronger the colour, the larger the attention weight.",
    page: "Generate",
    at: ["live-text: .strip"],
    isDone: (find) => find("live-text: .token:focus") !== null,
  },
  {
    title: "Ablate a head",
    ask: "To ablate a head is to set its output to zero. Does the prediction depend on this one? Open the menu “⋯” above, then “Changes”, and press “Change this”.",
    seen: "All numbers are now computed without that head. Compare the candidates: some heads matter a lot, others hardly at all. The next step restores it.",
    page: "Generate",
    at: ["shell: .change-add", "shell: summary:has(+ * .changes-menu)", "shell: .shell-more > button"],
    then: ["live-text: [data-part=candidates]"],
    closes: "shell: .shell-more > button[aria-expanded=true]",
    watch: (find, changed) => changed,
    isDone: (find, before, now) => now.some((code) => !before.includes(code)),
  },
  {
    title: "Another head",
    ask: "The model has other layers and heads. Choose another one.",
    seen: "For the same token this head has a different attention pattern. All heads of a layer work in parallel.",
    page: "Generate",
    at: ["live-text: [data-part=heads]", "live-text: .looking"],
    then: ["live-text: .strip"],
    watch: (find) => ["layer", "head"].map((setting) => find(`live-text: [data-setting=${setting}]`)?.value).join(" "),
    isDone: (find, before, now) => now !== before,
  },
  {
    title: "Follow a logit",
    ask: "The probabilities of the candidates are computed from logits. Press “Open in Inside” to see how one logit is computed.",
    seen: "This is the whole forward pass and the calculation of that logit. You can open every number in it, down to the embeddings.",
    page: "Generate",
    at: ["live-text: [data-part=inside]", "live-text: details:has([data-part=inside]) > summary"],
    then: ["inside: [data-part=cell]", "inside: .scene"],
    isDone: (find, before, now, page) => page === "Inside",
  },
  {
    title: "What next?",
    ask: "That was one prediction, from the text to its numbers. Point at or tap a term with a dotted underline for its definition, or choose “Terms” in the menu “⋯” for all terms on the page.",
    seen: "",
    at: [],
    ways: ["Learn", "Attention", "What if", "Train"],
    isDone: () => false,
  },
];

// The start: six steps over the live page, for who has never seen it. Each is a record: what to do, where, how it is seen to
// have been done, and what there is to see then.

const writtenIn = (strip) => strip?.querySelectorAll(".token.written").length ?? 0;

/**
 * ask: what to do; seen: what there is to see once it is done. at: selectors of the control, the first that is there; then: of
 * what is pointed at once it is done. watch(find): what is looked at to tell; isDone(find, before, now, page): whether it is, from
 * what that was as the step began and what it is now. ways: pages to go on to.
 */
export const PATH = [
  {
    title: "Let it write",
    ask: "This is a transformer, a small one, and all of it runs here. It reads the prompt and writes on. Press Generate.",
    seen: "It writes one token at a time: a character, in some models a word. The stronger the line below it, the surer the model was.",
    page: "Generate",
    at: ["live-text: [data-part=generate]"],
    watch: (find) => writtenIn(find("live-text: .strip")),
    isDone: (find, before, now) => now > before,
  },
  {
    title: "Where did it look?",
    ask: "Click a token that it wrote, in the middle of the text. With the keyboard: into the text with Tab, then the arrow keys.",
    seen: "The orange marks show which tokens it looked at to choose this one. That is attention: each token takes over something of those before it, and most of those that it gives the most weight.",
    page: "Generate",
    at: ["live-text: .strip"],
    then: ["live-text: .looking"],
    watch: (find) => find("live-text: .token.written.selected")?.dataset.index,
    isDone: (find, before, now) => now !== undefined && now !== before,
  },
  {
    title: "Another head",
    ask: "What you saw is one head of one layer. Choose another.",
    seen: "The same token, and other marks: each head has learned to look for something of its own, and all of them work at once.",
    page: "Generate",
    at: ["live-text: .looking"],
    watch: (find) => ["layer", "head"].map((dial) => find(`live-text: [data-dial=${dial}]`)?.value).join(" "),
    isDone: (find, before, now) => now !== before,
  },
  {
    title: "Take one away",
    ask: "Is that head needed? Open “Change” in the bar above: a head is to be silenced. Press “Change this”.",
    seen: "Every number here is now computed without that head. Some heads are hardly missed, others badly: compare the candidates. “Undo”, under “1 change”, brings it back.",
    page: "Generate",
    at: [".st-key-change_this button", ".st-key-popover_changes button"],
    watch: () => document.querySelectorAll(".st-key-changes [data-testid=stCheckbox]").length,
    isDone: (find, before, now) => now > before,
  },
  {
    title: "Follow one number",
    ask: "The candidates come from numbers called logits. Press “Open in Inside” to see where one of them comes from.",
    seen: "This is the whole pass, and the arithmetic of that one logit. Each number in it can be opened in turn, down to the embedding of a token.",
    page: "Generate",
    at: ["live-text: [data-part=inside]"],
    then: ["inside: [data-part=cell]", "inside: .scene"],
    isDone: (find, before, now, page) => page === "Inside",
  },
  {
    title: "What next",
    ask: "That was attention: tokens that look at earlier tokens, in several heads at once, layer by layer. Point at any dotted word to read what it means; press ? for all of them.",
    seen: "",
    at: [],
    ways: ["Learn", "Attention", "What if", "Train"],
    isDone: () => false,
  },
];

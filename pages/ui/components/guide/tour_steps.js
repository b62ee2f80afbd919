// The tour: six steps over the live page. Each is a record: what to do, where, how it is seen to have been done, and what there is
// to see then.

const writtenIn = (strip) => strip?.querySelectorAll(".token.written").length ?? 0;

/**
 * ask: what to do; seen: what there is to see once it is done. at: selectors of the control, the first that is there; then: of
 * what is pointed at once it is done. watch(find, changed): what is looked at to tell, changed being the codes of what is changed in
 * the model; isDone(find, before, now, page): whether it is, from what that was as the step began and what it is now. keep: what
 * the card doesn't cover either. closes: a button that hides what the step has opened. ways: pages to go on to.
 */
export const PATH = [
  {
    title: "Let it write",
    ask: "This is a small transformer, and all of it runs here. It reads the prompt and continues it. Press Generate.",
    seen: "It writes one token at a time: a word, in some models a character. The stronger the line below one, the surer the model was.",
    page: "Generate",
    at: ["live-text: [data-part=generate]"],
    keep: "live-text: .strip",
    then: ["live-text: .strip"],
    watch: (find) => writtenIn(find("live-text: .strip")),
    isDone: (find, before, now) => now > before,
  },
  {
    title: "Where did it look?",
    ask: "Click the first token that it wrote. With the keyboard: into the text with Tab, then the arrow keys.",
    seen: "Orange marks the tokens that it looked at to choose this one. That is attention: each token takes over something of those before it, and most of those that it gives the most weight.",
    page: "Generate",
    at: ["live-text: .strip"],
    watch: (find) => find("live-text: .token.written.selected")?.dataset.index,
    isDone: (find, before, now) => now !== undefined && now !== before,
  },
  {
    title: "Take one away",
    ask: "What you saw is one head of one layer. Is it needed? Open “Changes” in the bar above: this head is to be ablated. Press “Change this”.",
    seen: "Every number is now computed without that head. Some are hardly missed, others badly: compare the candidates. The next step brings it back.",
    page: "Generate",
    at: [".st-key-change_this button", ".st-key-popover_changes button"],
    then: ["live-text: [data-part=candidates]"],
    closes: ".st-key-popover_changes button[aria-expanded=true]",
    watch: (find, changed) => changed,
    isDone: (find, before, now) => now.some((code) => !before.includes(code)),
  },
  {
    title: "Another head",
    ask: "There are more heads, or more layers of one. Choose another.",
    seen: "The same token, and other marks: each head has learned to look for something of its own, and all of them work at once.",
    page: "Generate",
    at: ["live-text: [data-part=heads]", "live-text: .looking"],
    then: ["live-text: .strip"],
    watch: (find) => ["layer", "head"].map((dial) => find(`live-text: [data-dial=${dial}]`)?.value).join(" "),
    isDone: (find, before, now) => now !== before,
  },
  {
    title: "Follow one number",
    ask: "The candidates come from numbers called logits. Press “Open in Inside” to see where one of them comes from.",
    seen: "This is the whole pass, and the arithmetic of that one logit. Each number in it can be opened in turn, down to the embedding of a token.",
    page: "Generate",
    at: ["live-text: [data-part=inside]", "live-text: details:has([data-part=inside]) > summary"],
    then: ["inside: [data-part=cell]", "inside: .scene"],
    isDone: (find, before, now, page) => page === "Inside",
  },
  {
    title: "What next",
    ask: "That was attention: tokens that look at earlier tokens, in several heads at once, layer by layer. Point at a dotted word to read what it means; press ? for all of them.",
    seen: "",
    at: [],
    ways: ["Learn", "Attention", "What if", "Train"],
    isDone: () => false,
  },
];

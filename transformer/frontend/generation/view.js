// Connects the Generate instrument to its page and the HTTP API. Texts live in this tab: in the address, as far as it
// has room, and with their branches in the tab's storage, where a reload finds them.
import { pageState } from "../page/page_state.js";
import { GenerationInstrument } from "./instrument.js";
import { selectionFrom, paramsFrom, toLogit, windowStart } from "./view_params.js";
import { BranchStore } from "./branch_tree.js";
import { branchesIn, branchesOf, idsIn, writtenIn } from "./branch_codes.js";
/** @import { Api } from "../api.js" */

const KEPT = "headsup-texts";
const KEEP_MS = 500; // between two writes to the storage while a text grows
const SAMPLING = ["temperature", "top_k", "top_p", "seed"]; // a link with one of these opens the steps of sampling
let branchStore; // of this tab
let before = null; // the text that was on screen last

export class GenerationView {
  /** @type {Record<string, any>} */ about;

  constructor(root, host) {
    this.host = host;
    branchStore ??= new BranchStore(storage(), KEPT);
    this.instrument = new GenerationInstrument(root, {
      settingsChanged: (change) => host.select(paramsFrom(change)),
      select: (step) => host.select({ step }),
      textChanged: () => this.keepLater(),
      settled: () => this.save(),
      problem: (sentence) => host.showProblem(sentence),
      inside: host.navigates && ((position, token) => {
        const { generated: { context }, length } = this.instrument;
        const there = toLogit(position, token, length, context);
        this.save();
        if (there) host.navigate("Inside", there);
        else host.showProblem(`The model now reads from token ${windowStart(length, context)} on: Inside has no numbers for token ${position - 1}.`);
      }),
    });
    const gone = new AbortController();
    const flush = (event) => {
      if (!root.isConnected) gone.abort();
      else if (!event.composedPath().includes(root)) this.save(); // a press may open another page, which reads the address
    };
    for (const kind of ["pointerdown", "pagehide"]) addEventListener(kind, flush, { capture: true, signal: gone.signal });
  }

  /**
   * @param {Api} api
   * @param {Record<string, any>} about what Python says beside what is asked
   */
  async begin(api, { restored, written, ...about }) {
    this.about = about;
    const prompt = JSON.stringify([api.about.model ?? about.model, api.about.version, api.token, about.prompt, about.source]);
    const key = JSON.stringify([prompt, api.about.changes]);
    const isKnown = branchStore.has(key);
    const tree = branchStore.of(key, about.prompt.length);
    const codes = pageState().get("branches");
    const [session, count] = restored;
    // What a new session has of a tab that was there before is of another time.
    const isRestored = before ? session === before.session && count !== before.count : Boolean(written);
    // The address of a reload is that of a moment before: what was written since, the tab has kept.
    const isReloaded = !before && isReload() && isKnown && `${writtenIn(this.idsOf(tree))}.`.startsWith(written && `${written}.`);
    if (isRestored && !isReloaded) tree.restore(idsIn(written)); // a link's, or a lesson's
    else if (!isKnown && before?.prompt === prompt) tree.restore(before.ids); // the same prompt, and the model is changed otherwise
    else if (!isKnown) tree.restore(idsIn(written));
    if (codes && !isKnown && (isRestored || before?.prompt !== prompt)) branchesIn(codes, tree, about.vocabulary); // beside the text on screen
    before = { prompt, session, count, ids: this.idsOf(tree) };
    this.show(tree);
    const goal = tree === this.instrument.tree ? this.instrument.goal : null; // as where the server has come back, and knows nobody
    await this.instrument.begin(api, about, tree, this.chosen());
    if (goal !== null) this.instrument.generate(goal);
    this.save();
  }

  chosen() {
    const sampling = SAMPLING.some((name) => pageState().get(name) !== null);
    return { chosen: selectionFrom(pageState(), this.about), step: pageState().number("step"), sampling };
  }

  idsOf(tree) {
    return tree.current.written.map(({ id }) => id);
  }

  /** Write the text on screen to the address. */
  show(tree) {
    this.host.select({ written: writtenIn(this.idsOf(tree)), branches: branchesOf(tree) });
  }

  keepLater() {
    before.ids = this.idsOf(this.instrument.tree);
    this.show(this.instrument.tree);
    this.keeping ??= setTimeout(() => this.keep(), KEEP_MS);
  }

  keep() {
    clearTimeout(this.keeping);
    this.keeping = undefined;
    branchStore.keep();
  }

  /** Write everything on screen to address and storage. */
  save() {
    if (!this.about) return;
    this.show(this.instrument.tree);
    this.keep();
    pageState().flush();
  }

  setSelection() {
    if (this.about) this.instrument.setSelection(this.chosen());
  }

  draw() {
    this.instrument.draw();
  }
}

function isReload() {
  const [entry] = performance.getEntriesByType("navigation");
  return /** @type {PerformanceNavigationTiming} */ (entry)?.type === "reload";
}

function storage() {
  try {
    return sessionStorage;
  } catch {
    return null; // a browser may refuse to keep anything
  }
}

// Starts what helps on every page: the tour, the glossary's underlined terms, presentation mode. It lies over the page,
// at the end of the document, and lives as long as the tab: pages come and go beneath it.
import { markUntranslated } from "./untranslated_page.js";
import { attribute, partsOf, put, withView } from "../../../../transformer/frontend/dom.js";
import { TermTooltip } from "./term_tooltip.js";
import { areKeysOn, listenForKeys, turnKeys } from "./shortcuts.js";
import { TermUnderlines } from "./term_underlines.js";
import { TermPanel } from "./term_panel.js";
import { Presentation } from "./presentation.js";
import { Tour, remember, wasSeen } from "./tour.js";
import { glossaryTerms, matcherOf } from "./terms.js";

const THEME = ["text-color", "background-color", "border-color", "primary-color", "base-radius", "font"].map((name) => `--st-${name}`);

/** What there is once in a tab. templates: of what lies over the page, of the page's own style, and of presented instruments'. */
class Guide {
  /** @type {(name: string, value: unknown) => void} */ tell;

  constructor({ overlay, page, presented }, terms) {
    this.host = document.createElement("div");
    this.host.dataset.testid = "guide-overlay";
    this.host.dataset.over = ""; // so that no tip covers it
    const root = this.host.attachShadow({ mode: "open" });
    root.append(overlay.content.cloneNode(true));
    document.body.append(this.host);
    document.head.append(page.content.cloneNode(true));
    const parts = partsOf(root);
    const within = new CSSStyleSheet({ disabled: true });
    within.replaceSync(presented.content.textContent);
    this.underlines = new TermUnderlines(matcherOf(terms), within);
    this.gloss = new TermTooltip(parts.gloss, this.underlines);
    this.panel = new TermPanel(parts, terms, this.underlines);
    this.start = new Tour(parts);
    this.presentation = new Presentation(parts, within, (isLarge) => this.tell?.("presenting", isLarge));
    listenForKeys({ "?": () => this.panel.toggle(), p: () => this.presentation.set(!this.presentation.isOn) });
    document.addEventListener("click", closeMenu);
    markUntranslated();
    parts.keysOn.checked = areKeysOn();
    parts.keysOn.addEventListener("change", () => turnKeys(parts.keysOn.checked));
  }

  // The theme's colours reach a component and nothing beside it.
  dress(element) {
    const style = getComputedStyle(element);
    for (const name of THEME) this.host.style.setProperty(name, style.getPropertyValue(name));
  }

  /** Begin the tour as often as it was asked for. */
  lead({ tour_requests: requests }) {
    if (requests > (this.requests ?? 0)) this.start.begin();
    this.requests = requests;
  }
}

/** On a phone the navigation lies over the page, and stays there when a page was chosen. @param {MouseEvent} event */
function closeMenu({ target }) {
  if (!(target instanceof Element) || !target.closest("[data-testid=stSidebarNavLink]")) return;
  /** @type {HTMLElement | null} */ (document.querySelector("[data-testid=stSidebarCollapseButton] button"))?.click();
}

class View {
  constructor(parts) {
    this.parts = parts;
    parts.openStart.addEventListener("click", () => {
      this.guide.start.begin();
      this.offer(false);
    });
    parts.dismiss.addEventListener("click", () => {
      remember();
      this.offer(false);
      parts.openStart.focus();
    });
    parts.openTerms.addEventListener("click", () => this.guide.panel.toggle());
    parts.openPresenting.addEventListener("click", () => this.guide.presentation.set(true));
  }

  /** Offer the tour to who has never seen it, where a visit begins. */
  offer(isOffered) {
    put(this.parts.openStart, isOffered ? "New here? Take the tour" : "Tour");
    attribute(this.parts.openStart, "data-offered", String(isOffered));
    this.parts.dismiss.hidden = !isOffered;
  }

  update(data, terms, tell) {
    const isFirst = !globalThis.headsupGuide;
    this.guide = globalThis.headsupGuide ??= new Guide(this.parts, terms);
    this.guide.tell = tell;
    if (isFirst) this.guide.presentation.resume();
    this.guide.dress(this.parts.root);
    this.guide.lead(data);
    this.offer(data.begins && !wasSeen());
  }
}

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export async function mountGuide({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const terms = await glossaryTerms(data.terms);
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data, terms, setTriggerValue));
}

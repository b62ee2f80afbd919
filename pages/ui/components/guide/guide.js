// Starts what helps on every page: the tour, the glossary's underlined terms, presentation mode. It lies over the page,
// at the end of the document, and lives as long as the tab: pages come and go beneath it.
import { markUntranslated } from "./untranslated_page.js";
import { partsOf, withView } from "../../../../transformer/frontend/dom.js";
import { TermTooltip } from "./term_tooltip.js";
import { areKeysOn, listenForKeys, turnKeys } from "./shortcuts.js";
import { TermUnderlines } from "./term_underlines.js";
import { TermPanel } from "./term_panel.js";
import { Presentation } from "./presentation.js";
import { Tour } from "./tour.js";
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
  }

  update(data, terms, tell) {
    const isFirst = !globalThis.headsupGuide;
    const guide = (globalThis.headsupGuide ??= new Guide(this.parts, terms));
    guide.tell = tell;
    if (isFirst) guide.presentation.resume();
    guide.dress(this.parts.root);
    guide.lead(data);
  }
}

/** What the menu of a page has of it; each does nothing until the guide is there. */
export const guideMenu = () => [
  { title: "Tour", act: () => globalThis.headsupGuide?.start.begin() },
  { title: "Terms", key: "?", act: () => globalThis.headsupGuide?.panel.toggle() },
  { title: "Present", key: "p", act: () => globalThis.headsupGuide?.presentation.set(true) },
];

// Nothing is returned to clean up with: Streamlit also runs that when newer data overtake a call whose view lives on.
export async function mountGuide({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const terms = await glossaryTerms(data.terms);
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data, terms, setTriggerValue));
}

"""Finds what a visitor can use on a page, by role."""

FIND = """() => {
  const kinds = [
    ["turn to", "[data-testid=stTopNavLink]"], ["write", "textarea"], ["count", "input[type=number]"],
    ["slide", "input[type=range], [role=slider]"], ["upload", "input[type=file]"], ["switch", "input[type=checkbox]"],
    ["select", "[role=combobox]"], ["choose", "[role=radio], [role=tab]"], ["look at", "[role=option]"],
    ["pick", "select"], ["click", ".js-plotly-plot .nsewdrag"], ["steer", "canvas[role=application]"],
    ["open", "summary"], ["press", "button"],
  ];
  const any = kinds.map(([, selector]) => selector).join();
  const foreign = "[role=toolbar] *, [data-testid=stElementToolbar] *, [data-testid=stFileUploader] button, " +
    "[role=combobox] ~ button, button[aria-label^='Help for'], [data-testid=guide] *";
  const within = (root) => [...root.querySelectorAll(any), ...[...root.querySelectorAll("*")]
    .flatMap(({ shadowRoot }) => (shadowRoot ? within(shadowRoot) : []))];
  const found = [];
  for (const place of ["stTopNavLinkContainer", "stMain", "stPopoverBody"])
    for (const root of document.querySelectorAll(`[data-testid=${place}]`)) for (const element of within(root)) {
      let kind = kinds.find(([, selector]) => element.matches(selector))[0];
      if (element.disabled || element.matches(foreign) || element.pathname === location.pathname) continue;
      const hidden = kind === "switch" || kind === "upload";  // their inputs have no box of their own
      if (!(hidden ? element.parentElement : element).checkVisibility({ visibilityProperty: true })) continue;
      if (kind === "press" && element.getRootNode() !== document) kind = "look at";
      const text = element.querySelector("p") ?? element;  // without its icon
      const label = (element.getAttribute("aria-label") || text.textContent).trim();
      found.push({ element, kind, place, label: label.replace(/\\s+/g, " ").slice(0, 40) });
    }
  return found;
}"""
"""Everything that can be used now, each with the kind of step it lends itself to. Components draw in shadow roots.
Left out are Streamlit's own: help, the tools of tables and figures, the arrows of select boxes; and the guide, which
covers the page and changes nothing of it."""
DESCRIBE = "(found) => found.map(({ kind, label, place }) => [kind, label, place])"
DRAWN = """() => new Promise((resolve) => {
  const observer = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, 40); });
  const done = () => { observer.disconnect(); clearTimeout(timer); clearTimeout(last); resolve(); };
  let timer = setTimeout(done, 40);
  const last = setTimeout(done, 600);
  observer.observe(document.body, { childList: true, subtree: true });
})"""
"""Waits until nothing is drawn any more: Streamlit says it is at rest before React has drawn the last of it."""

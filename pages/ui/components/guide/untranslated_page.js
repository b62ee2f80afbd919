// Lets browsers that translate pages leave what Streamlit draws of a model as it is: code, formulas, figures and tables.

const DATA = "code, pre, .katex, .js-plotly-plot, [data-testid=stTable] td, [data-testid=stMetricValue], .st-key-room_address h2";

/** Mark what is on the page, and what will be. */
export function markUntranslated() {
  const mark = (element) => {
    if (element.matches(DATA)) element.translate = false;
    for (const found of element.querySelectorAll(DATA)) found.translate = false;
  };
  mark(document.body);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const added of addedNodes) if (added instanceof HTMLElement) mark(added);
  }).observe(document.body, { childList: true, subtree: true });
}

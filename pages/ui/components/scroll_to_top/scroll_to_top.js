// Scrolls to the top when another view opens, but not when the same view is redrawn.
let before;

export function mountScrollToTop({ data }) {
  if (!data) return;
  if (before !== undefined && before !== data.opened) document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  before = data.opened;
}

// Scrolls to the top when something else opens on the page; what is drawn anew stays where it is.
let before;

export default function ({ data }) {
  if (!data) return;
  if (before !== undefined && before !== data.opened) document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  before = data.opened;
}

// Draws what is drawn in pixels again when its page has other colours, or is printed: on paper it has another width, too.

/** Redraw a page of our own, which follows the system's colours. @param {() => void} draw as for `drawForPaper` */
export function redrawWithPage(draw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  drawForPaper(draw);
}

/** @param {() => void} draw draws all that is drawn in pixels, in the page's present size and colours */
export function drawForPaper(draw) {
  const { dataset } = document.documentElement;
  addEventListener("beforeprint", () => {
    dataset.printing = "true"; // its style sheet makes it as wide as a page, and light
    draw();
  });
  addEventListener("afterprint", () => {
    delete dataset.printing;
    draw();
  });
}

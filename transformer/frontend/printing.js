// Draws a page for paper while it is printed: what is drawn in pixels has the screen's width and colours.

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

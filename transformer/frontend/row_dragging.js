// Lets rows of a list be dragged up and down, by mouse, pen or finger.

const PASSED = 0.6; // of the next row's height

/**
 * Let a row be dragged past its neighbours. A finger drags what has the style `touch-action: none`, and scrolls the page elsewhere.
 *
 * @param {HTMLElement} row
 * @param {{ passed?: (step: 1 | -1) => void, done: (hasMoved: boolean) => void }} on passed: it stands behind the row after it (1), or before
 *   the one before it (−1)
 */
export function letDrag(row, { passed, done }) {
  row.addEventListener("pointerdown", (event) => {
    if (event.button || /** @type {Element} */ (event.target).closest("button")) return;
    let begin = event.clientY;
    let moved = 0;
    row.setPointerCapture(event.pointerId);
    row.classList.add("held");
    row.onpointermove = ({ clientY }) => {
      const step = clientY < begin ? -1 : 1;
      const next = /** @type {HTMLElement | null} */ (step < 0 ? row.previousElementSibling : row.nextElementSibling);
      if (next && Math.abs(clientY - begin) > next.offsetHeight * PASSED) {
        const before = row.offsetTop;
        if (step < 0) row.after(next); // not the row itself, which would be let go of
        else row.before(next);
        begin += row.offsetTop - before;
        moved += step;
        passed?.(step);
      }
      row.style.transform = `translateY(${clientY - begin}px)`;
    };
    row.onpointerup = row.onpointercancel = () => {
      row.classList.remove("held");
      row.style.transform = "";
      row.onpointermove = row.onpointerup = row.onpointercancel = null;
      done(moved !== 0);
    };
  });
}

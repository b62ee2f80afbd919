// Tells what a pointer is on: a mouse or pen by moving there, a finger by a tap.

/**
 * Call point(event) when a pointer is on something of an element, and point(null) when it no longer is: a mouse or pen has left,
 * or a finger has touched the page again. kind: the event of a mouse that is on something else.
 *
 * @param {Element} element
 * @param {(event: any) => void} point
 * @param {"pointermove" | "pointerover"} [kind]
 */
export function followPointer(element, point, kind = "pointermove") {
  const unlessFinger = (told) => (event) => event.pointerType !== "touch" && point(told(event));
  element.addEventListener(kind, unlessFinger((event) => event));
  element.addEventListener("pointerleave", unlessFinger(() => null));
  onTap(element, point);
}

/** The same for fingers alone. @param {Element} element @param {(event: any) => void} point */
export function onTap(element, point) {
  let isFinger = false;
  element.addEventListener("pointerdown", (event) => (isFinger = /** @type {PointerEvent} */ (event).pointerType === "touch"));
  element.addEventListener("click", (event) => {
    if (!isFinger || !(/** @type {MouseEvent} */ (event).detail)) return; // keys click, too
    point(event);
    const ends = new AbortController();
    for (const kind of ["pointerdown", "pointermove"]) {
      document.addEventListener(kind, (next) => {
        if (kind === "pointermove" && /** @type {PointerEvent} */ (next).pointerType === "touch") return;
        ends.abort();
        point(null);
      }, { signal: ends.signal, capture: true });
    }
  });
}

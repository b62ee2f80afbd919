// Shows a tip above everything else: in the browser's top layer (popover="manual"), or, where a browser has none (before Chrome 114,
// Firefox 125, Safari 17), by its style sheet, which knows it by data-raised.

export function isRaised(element) {
  return element.dataset.raised !== undefined && (!element.showPopover || element.matches(":popover-open"));
}

export function raise(element) {
  if (isRaised(element)) return;
  element.dataset.raised = "";
  element.showPopover?.();
}

export function lower(element) {
  if (isRaised(element)) element.hidePopover?.();
  delete element.dataset.raised;
}

/**
 * Position a raised element in the window. Without a top layer, `position: fixed` may count from an ancestor instead.
 *
 * @param {HTMLElement} element
 * @param {(size: { width: number, height: number }) => { left: number, top: number } | null} placeOf where its corner goes, in pixels
 *   of the window; null for nowhere
 * @returns {boolean} whether there was a place
 */
export function place(element, placeOf) {
  Object.assign(element.style, { left: "0", top: "0" }); // where it was, the window's edge might make it narrow
  const box = element.getBoundingClientRect();
  const found = placeOf(box);
  if (found) Object.assign(element.style, { left: `${found.left - box.left}px`, top: `${found.top - box.top}px` });
  return Boolean(found);
}

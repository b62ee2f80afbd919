// What is known of a token, over it, while it is pointed at or has the focus.

class Tip {
  constructor(element) {
    this.element = element;
  }

  show(target, lines) {
    const { element: tip } = this;
    put(tip, lines.join("\n"));
    // The top layer: neither the box's scrolling nor an ancestor's transform clips or moves the tip.
    if (!tip.matches(":popover-open")) tip.showPopover?.();
    this.target = target;
    const place = target.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(Math.max(place.left, 8), document.documentElement.clientWidth - width - 8);
    const above = place.top - height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : place.bottom + 8}px`;
  }

  hide() {
    this.target = null;
    if (this.element.matches(":popover-open")) this.element.hidePopover();
  }

  /** A token that was taken away can't be described any more. */
  hideIfGone() {
    if (this.target && !this.target.isConnected) this.hide();
  }
}

// Draws lines over a text, from the selected token to those that it attends to, or that attend to it. A larger weight
// has a heavier line.
import { attribute } from "../dom.js";

const MOST = 24; // lines
const LEAST = 0.01; // weight
const HIGHEST = 20; // height of an arc between two tokens of one line, in pixels

export class AttentionLines {
  /** @param {HTMLElement} parent of the tokens, which stand in it as their offsets are counted */
  constructor(parent) {
    this.parent = parent;
    /** @type {Map<HTMLElement, { x: number, top: number, bottom: number }>} */
    this.positions = new Map();
  }

  /** Forget where tokens stand: the text, or how it is set, has changed. */
  refresh() {
    this.positions.clear();
  }

  /**
   * @param {HTMLElement} from
   * @param {{ token: HTMLElement, weight: number }[]} others
   */
  show(from, others) {
    const heaviest = others.filter(({ token, weight }) => token !== from && weight >= LEAST)
      .sort((one, other) => other.weight - one.weight).slice(0, MOST);
    if (!this.svg?.isConnected) {
      this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      attribute(this.svg, "class", "lines");
      attribute(this.svg, "aria-hidden", "true");
      this.parent.append(this.svg);
    }
    const start = this.positionOf(from);
    this.svg.replaceChildren(...heaviest.map(({ token, weight }) => {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      attribute(path, "d", curve(start, this.positionOf(token)));
      attribute(path, "stroke-width", (1 + 3 * weight).toFixed(2));
      attribute(path, "opacity", (0.2 + 0.8 * weight).toFixed(2));
      return path;
    }));
  }

  // Cached, because reading it makes the browser lay the page out.
  positionOf(token) {
    let position = this.positions.get(token);
    if (!position) {
      const { offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height } = token;
      this.positions.set(token, (position = { x: left + width / 2, top, bottom: top + height }));
    }
    return position;
  }
}

function curve(from, to) {
  if (from.top === to.top) {
    const high = from.top - Math.min(HIGHEST, 6 + Math.abs(to.x - from.x) / 6);
    return `M${from.x} ${from.top} C${from.x} ${high} ${to.x} ${high} ${to.x} ${to.top}`;
  }
  const [start, end] = to.top < from.top ? [from.top, to.bottom] : [from.bottom, to.top];
  const middle = (start + end) / 2;
  return `M${from.x} ${start} C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${end}`;
}

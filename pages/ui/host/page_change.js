// Knows when the visitor is on the way to another page. Until that is drawn, Streamlit takes whatever a component tells
// it for a wish to run the page that is being left, and the visitor would stay there.
import { PAGE_LINK } from "./page_link.js";

const LONGEST_MS = 10_000; // a page that hasn't come by then is waited for no more

const LINKS = `${PAGE_LINK}, [data-testid=stPageLink-NavLink]`;

const trimmed = (path) => path.replace(/\/+$/, "");

export class PageChange {
  /** @type {string | null} */ path = null; // of the page that is awaited
  until = 0;
  drawn = ""; // the path of the page that was drawn last

  /** The visitor leaves for the page at this path. now: milliseconds. */
  begin(path, now) {
    this.path = trimmed(path);
    this.until = now + LONGEST_MS;
  }

  /** The page at this path is drawn. */
  arrived(path) {
    this.drawn = trimmed(path);
    if (this.drawn === this.path) this.path = null;
  }

  /** Back or Forward: within a page no other is awaited. */
  go(path, now) {
    if (trimmed(path) !== this.drawn || this.isUnderWay(now)) this.begin(path, now);
  }

  isUnderWay(now) {
    return this.path !== null && now < this.until;
  }
}

/** The link to a page that a click follows in this tab. @param {MouseEvent} event @returns {HTMLAnchorElement | undefined} */
export function followedLink(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return undefined;
  return /** @type {any[]} */ (event.composedPath()).find((each) => each.matches?.(LINKS));
}

let shared;

/** That of this tab. */
export function pageChange() {
  if (!shared) {
    shared = new PageChange();
    addEventListener("click", (event) => {
      const link = followedLink(event);
      if (link && trimmed(link.pathname) !== trimmed(location.pathname)) shared.begin(link.pathname, performance.now());
    }, { capture: true });
    addEventListener("popstate", () => shared.go(location.pathname, performance.now()), { capture: true });
  }
  return shared;
}

// Opens another page of the app through its link in the navigation.

export const PAGE_LINK = "[data-testid=stTopNavLink], [data-testid=stSidebarNavLink]";

/** The link to a page; undefined where there is none, as beside a page that runs by itself. */
export function pageLink(title) {
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = document.querySelectorAll(PAGE_LINK);
  return [...links].find((link) => link.textContent.trim().endsWith(title));
}

/** The title of the page that is open. Its link can't be told by its address: that of the first page is empty. */
export function openPage() {
  return document.documentElement.dataset.headsupPage ?? "";
}

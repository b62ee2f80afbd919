// One page of a static site: the shell, with models that this browser computes.

import { partsOf } from "../dom.js";
import { DEFAULT_MODEL, pageState } from "../page/page_state.js";
import { Shell } from "../page/shell.js";
import { redrawWithPage } from "../printing.js";
import { Models, fetched } from "../site/models.js";
import { keepOffline } from "../site/offline.js";
/** @import { ListedModel } from "../page/shell.js" */
/** @import { Views } from "../page/view_slot.js" */

/** @typedef {{ page: { title: string, sentence: string, usesModel: boolean }, first: string, models: ListedModel[] }} About first: the model of an address that says nothing */

/** @param {Views} views that the page needs */
export function startPage(views) {
  const { shell: place, pages } = partsOf(document);
  /** @type {About} */
  const { page, first, models: catalogue } = JSON.parse(document.getElementById("about").textContent);
  const state = pageState();
  const isListed = catalogue.some(({ name }) => name === DEFAULT_MODEL);
  if (!state.get("model")) state.set({ model: location.search && isListed ? DEFAULT_MODEL : first });
  const shell = new Shell(place, {
    page, views, catalogue, answers: new Models(fetched),
    navigate: (title) => (location.href = `${new URL(`${fileOf(title)}/`, document.baseURI)}${location.search}`),
    changed: () => keepOffline(),
  });
  /** @type {NodeListOf<HTMLAnchorElement>} */
  const links = pages.querySelectorAll("a");
  for (const link of links) link.addEventListener("click", () => (link.search = location.search)); // the state goes along
  redrawWithPage(() => shell.redraw());
}

const fileOf = (title) => title.replaceAll(" ", "_");

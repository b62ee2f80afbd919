// Draws one entry of the glossary.
import { node, put, untranslated } from "../../../../transformer/frontend/dom.js";
import { openPage, pageLink } from "../../host/page_link.js";

/** Put an entry into `parent`: what it means, where it comes from, where it can be seen. leave(): called before it is gone to. */
export function drawEntry(parent, { name, meaning, source, code, page }, leave) {
  put(node("b", "name", parent), name);
  put(node("p", "meaning", parent), meaning);
  const about = node("p", "about", parent);
  about.append(`${source} · in the code `);
  put(untranslated(node("code", "", about)), code);
  if (!pageLink(page)) return;
  const isHere = page === openPage();
  const way = node("button", "way", parent);
  put(way, isHere ? "Seen on this page" : `See it on ${page}`);
  way.disabled = isHere;
  way.addEventListener("click", () => {
    leave();
    pageLink(page)?.click();
  });
}

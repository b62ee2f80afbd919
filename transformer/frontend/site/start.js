// @ts-nocheck
// Runs first on each page of a site: says where the site is, and has the browser fetch what the first picture needs. It is a file,
// because a host may allow no scripts in pages. ROOT, put before this when the site is written, is the site as seen from here.
/* global ROOT */

// A host may take the slash off a page's address, and the page's <base> then leads too far up. This file is loaded before that
// <base>, so from the page's own folder or, without the slash, from the one above: each has a copy, with its own ROOT.
const { src, dataset } = document.currentScript;
const site = new URL(ROOT, src);
document.head.prepend(Object.assign(document.createElement("base"), { href: site }));

if (location.protocol === "file:") {
  addEventListener("DOMContentLoaded", () => {
    const problem = document.querySelector("[data-part=problem]");
    problem.textContent = "A browser runs these pages from a web server only. In their folder run: python -m http.server";
    problem.hidden = false;
  });
} else if (dataset.first) {
  const model = new URLSearchParams(location.search).get("model") ?? (location.search ? dataset.otherwise : dataset.first);
  for (const file of ["model.json", "model.safetensors"]) {
    const link = { rel: "preload", as: "fetch", href: new URL(`models/${model}/${file}`, site) };
    document.head.append(Object.assign(document.createElement("link"), link));
  }
}

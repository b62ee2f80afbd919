// @ts-nocheck
// Runs first on each page of a site: says where the site is, and asks for what the first picture needs. It is in a file of its
// own, for hosts that allow no scripts in pages. The first line, put before this when the site is written, says where the site
// is as seen from this file: there is one beside each page.
/* global ROOT */

// A host may leave out the slash at the end of a page's address. Its addresses then begin a folder further up, from where this
// file is fetched: it stands before the page's own <base>.
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
  fetch(new URL("scripts/worker.js", site)).catch(() => {}); // no preload is of use to a worker; what is cached is
}

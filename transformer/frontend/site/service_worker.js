// @ts-nocheck
// Keeps what a site is made of, so that it opens without a network after the first visit: all but the models at once, and
// each model once it was picked. The first line, put before this when the site is written, says { version, files }.
/* global SITE */

const cacheName = `headsup-${SITE.version}`;

self.addEventListener("install", (event) => event.waitUntil(install()));

self.addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith("headsup-") && name !== cacheName;
  const clear = async () => {
    for (const name of await caches.keys()) if (isOld(name)) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(clear());
});

self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && new URL(event.request.url).origin === location.origin) event.respondWith(answer(event));
});

async function install() {
  const cache = await caches.open(cacheName);
  const keepFile = async (file) => {
    const response = await fetch(file);
    if (!response.ok) throw new TypeError(`${file}: ${response.status}`);
    await keep(cache, new URL(file, location.href).href, response);
  };
  await Promise.all(SITE.files.map(keepFile));
  await self.skipWaiting();
}

async function answer(event) {
  const { request } = event;
  const cache = await caches.open(cacheName);
  const kept = await cache.match(keptAs(request.url));
  if (kept) return kept;
  const response = await fetch(request);
  if (response.status === 200) {
    // The page doesn't wait for that, and does without where a browser has no room.
    event.waitUntil(keep(cache, request.url, response.clone()).catch(() => {}));
  }
  return response;
}

/** A browser refuses to open a page with an answer that says that it was redirected, as hosts do for a slash. */
function keep(cache, address, response) {
  const { body, status, statusText, headers } = response;
  return cache.put(keptAs(address), response.redirected ? new Response(body, { status, statusText, headers }) : response);
}

/** A page's address with a slash at its end, without one, with its file's name: the same. A view is in the parameters. */
function keptAs(address) {
  const { origin, pathname } = new URL(address);
  return origin + pathname.replace(/\/(index\.html)?$/, "");
}

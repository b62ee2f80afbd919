// @ts-nocheck
// Keeps what a site is made of, so that it opens without a network after the first visit: all but the models at once, and
// each model once it was picked. The first line, put before this when the site is written, says { version, files }.
/* global SITE */

const cacheName = `headsup-${SITE.version}`;

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(cacheName).then((cache) => cache.addAll(SITE.files)).then(() => self.skipWaiting()));
});

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

async function answer(event) {
  const { request } = event;
  const cache = await caches.open(cacheName);
  const kept = await cache.match(request, { ignoreSearch: true }); // a view is in the parameters, and the page is the same
  if (kept) return kept;
  const response = await fetch(request);
  if (response.status === 200) {
    // The page doesn't wait for that, and does without where a browser has no room.
    event.waitUntil(cache.put(request.url.split("?")[0], response.clone()).catch(() => {}));
  }
  return response;
}

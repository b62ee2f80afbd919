// Has the browser keep the site, so that it opens without a network from then on.

/** Called once something is shown: until then, what is kept would take the line from what is waited for. */
export async function keepOffline() {
  try {
    await navigator.serviceWorker?.register(new URL("service_worker.js", document.baseURI));
  } catch {
    // A browser or a host may refuse; the site works all the same, while there is a network.
  }
}

// What this tab's address bar was last told to hold: kept for as long as the tab is, whatever becomes of the server.

/** { at, query }: when, and the parameters. */
export function lastAddress() {
  return (globalThis.headsupAddress ??= { at: 0, query: "" });
}

/** Whether the tab had parameters that are gone from the bar, which a session that begins is about to be told. */
export function hasLostParameters() {
  const { query } = lastAddress();
  return query !== "" && !location.search.startsWith(`?${query}`);
}

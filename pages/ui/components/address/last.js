// What this tab's address bar was last told to hold: kept for as long as the tab is, whatever becomes of the server.

/** { at, query }: when, and the parameters. */
export function lastAddress() {
  return (globalThis.headsupAddress ??= { at: 0, query: "" });
}

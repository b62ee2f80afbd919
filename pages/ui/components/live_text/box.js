/** Where data for the view of a name, and its events, are handed over: one box a name, for this tab. */
function boxOf(name) {
  const boxes = (globalThis.headsupLiveText ??= new Map());
  if (!boxes.has(name)) boxes.set(name, {});
  return boxes.get(name);
}

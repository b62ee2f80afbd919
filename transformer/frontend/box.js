// Where what brings data and what draws them meet, in whichever order they come.

/** The box of a name, in which data for a view, and its events, are handed over: one a name, for this tab. */
export function boxOf(name) {
  const boxes = (globalThis.headsupBoxes ??= new Map());
  if (!boxes.has(name)) boxes.set(name, {});
  return boxes.get(name);
}

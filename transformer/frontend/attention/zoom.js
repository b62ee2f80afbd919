// Computes a heatmap's zoom window: { top, bottom, left, right } in queries and keys, or null for the whole text.

const SMALLEST = 4; // tokens on either side of the window

/** A window with half as many tokens, around a cell. */
export function closer(window, cell, { queries, keys }) {
  const from = window ?? { top: 0, bottom: queries, left: 0, right: keys };
  const [top, bottom] = around(cell.row, (from.bottom - from.top) / 2, queries);
  const [left, right] = around(cell.column, (from.right - from.left) / 2, keys);
  return part({ top, bottom, left, right }, { queries, keys });
}

/** A window with twice as many. */
export function farther(window, cell, { queries, keys }) {
  if (!window) return null;
  const [top, bottom] = around((window.top + window.bottom - 1) / 2, 2 * (window.bottom - window.top), queries);
  const [left, right] = around((window.left + window.right - 1) / 2, 2 * (window.right - window.left), keys);
  return part({ top, bottom, left, right }, { queries, keys });
}

/** The window, moved until it contains a cell. */
export function following(window, { row, column }) {
  if (!window) return null;
  const moved = (from, to, at) => (at < from ? at - from : at >= to ? at - to + 1 : 0);
  const [down, across] = [moved(window.top, window.bottom, row), moved(window.left, window.right, column)];
  return { top: window.top + down, bottom: window.bottom + down, left: window.left + across, right: window.right + across };
}

/** Zoom by keys: + in, − out, 0 for the whole text. zoom: takes a function such as `closer`. */
export function zoomByKey({ key, ctrlKey, metaKey, altKey }, zoom) {
  const change = { "+": closer, "-": farther, 0: () => null }[key];
  if (change && !ctrlKey && !metaKey && !altKey) zoom(change);
}

/** A selection, limited to what a pass has. */
export function fitted(chosen, pass) {
  const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
  const { zoom } = chosen;
  const isThere = zoom && zoom.top < zoom.bottom && zoom.left < zoom.right && zoom.bottom <= pass.queries && zoom.right <= pass.keys;
  return {
    ...chosen, layer: within(chosen.layer, pass.layers), head: within(chosen.head, pass.heads), zoom: isThere ? zoom : null,
    order: pass.orders.some(({ name }) => name === chosen.order) ? chosen.order : "",
    without: chosen.without.filter((rule) => (rule === "mask" ? pass.causal : !pass.uniform)),
  };
}

// The whole text is no zoom.
function part(window, { queries, keys }) {
  const { top, bottom, left, right } = window;
  return bottom - top === queries && right - left === keys ? null : window;
}

function around(centre, wanted, count) {
  const size = Math.min(Math.max(Math.round(wanted), SMALLEST), count);
  const start = Math.min(Math.max(Math.round(centre - (size - 1) / 2), 0), count - size);
  return [start, start + size];
}

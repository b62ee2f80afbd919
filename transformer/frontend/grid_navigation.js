// Computes which cell of a grid a key of the keyboard leads to.

/**
 * The cell that a key leads to from a cell, or null for a key, or a combination, that moves nothing in a grid. At an edge
 * it is the cell itself. `pressed`: a keyboard event. `cell` and the result: { row, column }, counted from 0.
 * `page`: how many rows PageUp and PageDown go.
 */
export function nextCell(pressed, { row, column }, rows, columns, page = 10) {
  if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return null;
  const target = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    Home: [row, 0],
    End: [row, columns - 1],
    PageUp: [row - page, column],
    PageDown: [row + page, column],
  }[pressed.key];
  if (!target || rows < 1 || columns < 1) return null;
  const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
  return { row: within(target[0], rows), column: within(target[1], columns) };
}

"""Reads figures that plotly has drawn."""

CRAMPED = """(charts) => charts.flatMap(({ layout: { margin }, _fullLayout: { _size } }, place) => ["l", "r", "t", "b"]
  .filter((side) => Math.abs(_size[side] - margin[side]) > 0.01)
  .map((side) => `figure ${place} needs ${_size[side]} px at ${side}, and has ${margin[side]}`))"""
"""Where what stands beside a plot needs more room than the figure was given: plotly drew it once more for that."""
OVERLAPPING = """(charts) => charts.flatMap((chart, place) => ["xtick", "ytick"].flatMap((kind) => {
  const boxes = [...chart.querySelectorAll(`.${kind} text`)].map((label) => label.getBoundingClientRect());
  const [from, to] = kind === "xtick" ? ["left", "right"] : ["top", "bottom"];
  boxes.sort((one, other) => one[from] - other[from]);
  return boxes.filter((box, i) => i && boxes[i - 1][to] > box[from] + 1).map(() => `figure ${place}, ${kind}`);
}))"""
"""Where one label of an axis runs into the next."""

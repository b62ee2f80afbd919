// Computes where the card of the tour lies, from rectangles in window pixels.

const GAP = 14; // between what a step is about and the card
const EDGE = 10; // between the card and the window's edge

/**
 * The first place that covers nothing, else the one that covers least: below what a step is about, above it, to a side of it, in a corner.
 * card: { width, height }. subject: what the step is about; undefined if there is nothing. keep: what else has to be
 * pressed. isNarrow: the card is as wide as the window. Returns { left, top, covered }, the last an area.
 */
export function placeCard({ width, height }, subject, keep, room, isNarrow) {
  const within = (start, size, length) => Math.max(EDGE, Math.min(start, length - size - EDGE));
  const at = (left, top) => ({ left: isNarrow ? 0 : within(left, width, room.width), top: isNarrow ? top : within(top, height, room.height) });
  const low = room.height - height;
  const right = room.width - width;
  const beside = subject && !isNarrow ? [
    at(subject.left, subject.bottom + GAP), at(subject.right - width, subject.bottom + GAP), at(subject.left, subject.top - GAP - height),
    at(subject.right + GAP, subject.top), at(subject.left - GAP - width, subject.top),
  ] : [];
  const candidates = [...beside, at(right, low), at(0, low), at(right, 0), at(0, 0)];
  const measured = candidates.map((candidate) => {
    const areaOf = (rect) => areaOfBoth({ ...candidate, right: candidate.left + width, bottom: candidate.top + height }, rect);
    return { ...candidate, covered: [subject, ...keep].reduce((sum, rect) => sum + (rect ? areaOf(rect) : 0), 0) };
  });
  return measured.reduce((best, candidate) => (candidate.covered < best.covered ? candidate : best));
}

function areaOfBoth(one, other) {
  const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  return Math.max(0, width) * Math.max(0, height);
}

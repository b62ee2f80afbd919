// The changes of a model in a page state: codes with ! between them, of which one that is off begins with -.

const MOST = 24; // changes at once

/** What a code changes: of two that differ by their dial alone, the later takes the place of the earlier. @param {string} code */
function partOf(code) {
  const [kind, ...fields] = code.replace(/^-/, "").split("~");
  if (kind === "scale") return [kind, ...fields.slice(0, 3)].join("~");
  if (kind === "steer") return [kind, ...fields.slice(0, 6), fields[7]].join("~");
  return kind === "weigh" ? [kind, ...fields.slice(0, 4)].join("~") : [kind, ...fields].join("~");
}

/**
 * Changes with others. An Error says why one can't be added.
 *
 * @param {string | null} codes
 * @param {{ add?: string[], remove?: string[] }} change
 */
export function withChange(codes, { add = [], remove = [] }) {
  const gone = new Set(remove);
  let all = (codes ?? "").split("!").filter((code) => code && !gone.has(code.replace(/^-/, "")));
  for (const code of add) {
    const at = all.findIndex((other) => partOf(other) === partOf(code));
    if (at < 0 && all.length >= MOST) throw new Error(`at most ${MOST} changes can be made at once`);
    all = at < 0 ? [...all, code] : all.map((other, place) => (place === at ? code : other));
  }
  return all.join("!");
}

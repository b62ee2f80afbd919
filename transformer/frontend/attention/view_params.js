// Converts the selection of the page Attention to and from view parameters, whose positions count the whole text's
// tokens; the selection counts those that the model reads.
import { parameter } from "../page/page_state.js";
/** @import { Window } from "../heatmap.js" */
/** @import { Kind, Overview } from "./pass.js" */
/** @import { PageState } from "../page/page_state.js" */

/**
 * What a page says of a pass beside its request. offsets: positions of the first query and key in the whole text; opening: the layer and
 * head to begin with if a link names none; begin: the position of the first token that the model reads.
 *
 * @typedef {object} About
 * @property {string} model
 * @property {Kind} kind
 * @property {{ queries: number, keys: number }} offsets
 * @property {{ layer: number, head: number }} opening
 * @property {number} begin
 */

/**
 * @typedef {"weights" | "raw" | "scaled" | "capped" | "biased" | "masked"} Stage
 *
 * @typedef {object} Chosen
 * @property {number} layer
 * @property {number} head
 * @property {number | null} query null for the one that the pass is given for
 * @property {number | null} key null for the query's heaviest
 * @property {Stage} stage
 * @property {Window | null} zoom
 * @property {string[]} without rules that the redrawn picture leaves out: "mask", "scale"
 * @property {string} order the measure that heads are sorted by
 * @property {"from" | "to"} direction
 * @property {boolean} derivation whether the steps to the weights are open
 */

const shifted = (position, by) => (position === null || position === undefined ? null : position + by);

/**
 * The selection for `AttentionInstrument.begin`; the default where the pass lacks what a link says.
 *
 * @param {PageState} looked
 * @param {Pick<About, "offsets" | "opening">} about
 * @param {Pick<Overview, "queries" | "keys" | "modules" | "config">} pass
 * @returns {Chosen}
 */
export function selectionFrom(looked, { offsets: { queries, keys }, opening }, pass) {
  const zoom = looked.numbers("zoom");
  const [top, bottom, left, right] = zoom?.length === 4 ? [zoom[0] - queries, zoom[1] - queries, zoom[2] - keys, zoom[3] - keys] : [-1];
  const isThere = Math.min(top, left) >= 0 && top < bottom && left < right && bottom <= pass.queries && right <= pass.keys;
  const choice = (name) => (parameter(name).options.includes(looked.get(name)) ? looked.get(name) : parameter(name).default);
  const { layer, head } = looked.layerAndHead(opening);
  const chosen = {
    layer: Math.min(layer, pass.modules.length - 1),
    head: Math.min(head, pass.config.n_heads - 1),
    query: within(shifted(looked.number("query"), -queries), pass.queries),
    key: within(shifted(looked.number("key"), -keys), pass.keys),
    stage: choice("stage"),
    zoom: isThere ? { top, bottom, left, right } : null,
    without: parameter("without").options.filter((rule) => (looked.get("without") ?? "").split(",").includes(rule)),
    order: looked.get("order") ?? "",
    direction: choice("direction"),
  };
  const wish = looked.get("derivation");
  return { ...chosen, derivation: wish === "open" || (wish !== "closed" && isMeant(chosen)) };
}

// A link to scores, to a picture without a rule, or to a cell opens the steps.
const isMeant = ({ stage, without, query, key }) => stage !== "weights" || without.length > 0 || (query !== null && key !== null);

/**
 * The other way round, for `PageState.set`.
 *
 * @param {Chosen} chosen
 * @param {About["offsets"]} offsets
 */
export function paramsFrom(chosen, { queries, keys }) {
  const { layer, head, query, key, stage, zoom, without, order, direction, derivation } = chosen;
  const given = (name, value) => (value === parameter(name).default ? null : value);
  return {
    layer, head, query: shifted(query, queries), key: shifted(key, keys), stage: given("stage", stage),
    zoom: zoom && [zoom.top + queries, zoom.bottom + queries, zoom.left + keys, zoom.right + keys].join(),
    without: without.join(), order, direction: given("direction", direction),
    derivation: derivation ? "open" : isMeant(chosen) ? "closed" : null,
  };
}

/**
 * The selection of the page Inside that shows a weight in the whole pass.
 *
 * @param {Pick<Overview, "kind" | "modules">} outline
 * @param {{ layer: number, head: number, query: number, key: number }} cell counted from the first that is read
 * @param {Pick<About, "offsets" | "begin">} about
 */
export function toWeight({ kind, modules }, { layer, head, query, key }, { offsets, begin }) {
  /** @type {{ place?: number | null, source_place?: number }} */
  const positions = {};
  if (kind === "encoder") positions.source_place = query;
  else positions.place = query + offsets.queries < begin ? null : query + offsets.queries;
  if (kind === "cross") positions.source_place = key;
  const row = query + offsets.queries - (kind === "encoder" ? 0 : begin);
  const column = key + offsets.keys - (kind === "encoder" || kind === "cross" ? 0 : begin);
  return {
    inside: `${modules[layer]}.hook_pattern`, moment: null, heads: "one", head, ...positions,
    cell: Math.min(row, column) < 0 ? null : [head, row, column].join(),
  };
}

function within(position, count) {
  return position !== null && position >= 0 && position < count ? position : null;
}

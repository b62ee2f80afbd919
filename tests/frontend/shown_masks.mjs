// What the page Masks shows of a page state, without its DOM: both pictures and their tables.
import { HttpAnswers } from "../../transformer/frontend/page/answers.js";
import { textOf } from "../../transformer/frontend/page/text_reading.js";
import { viewData } from "../../transformer/frontend/page/view_data.js";
import { tableOfMasks } from "../../transformer/frontend/masks/panels.js";
import { tableOfPredictions } from "../../transformer/frontend/masks/readings.js";
import { otherPanels, pictureOf, readingsOf } from "../../transformer/frontend/masks/view.js";
/** @import { PageState } from "../../transformer/frontend/page/page_state.js" */

/** @param {PageState} state */
export async function shownMasks(state) {
  const model = await new HttpAnswers().open(state.get("model"));
  const { request, about, notes } = /** @type {any} */ (await viewData("Masks", state, model, await textOf(model, state)));
  const apis = [request, about.other].map((each) => model.apiOf(each, { computed: () => {} }));
  const readings = about.windows.length ? await readingsOf(apis, about) : null;
  const { panels, predictions } = pictureOf(about, readings);
  const others = otherPanels(about, state.number("filler") ?? 3);
  const candidates = readings && tableOfPredictions(readings, { ...panels[0], isEncoder: about.isEncoder });
  return { about, notes, panels, predictions, candidates, others, table: tableOfMasks([...panels, ...others]) };
}

// What the page Positions shows of a page state, without its DOM: both orders, and the model's own positions.
import { HttpAnswers } from "../../transformer/frontend/page/answers.js";
import { textOf } from "../../transformer/frontend/page/text_reading.js";
import { viewData } from "../../transformer/frontend/page/view_data.js";
import { comparedOrders, howItIsDone, tableOfOrders, verdict, waysOf } from "../../transformer/frontend/positions/orders.js";
import { drawnOf, inWords, kindOfPositions } from "../../transformer/frontend/positions/own_positions.js";
/** @import { PageState } from "../../transformer/frontend/page/page_state.js" */

/** @param {PageState} state */
export async function shownPositions(state) {
  const opened = await new HttpAnswers().open(state.get("model"));
  const { request, about: { model, text } } = /** @type {any} */ (await viewData("Positions", state, opened, await textOf(opened, state)));
  const api = opened.apiOf(request, { computed: () => {} });
  const found = await comparedOrders(api, (asked) => opened.apiOf(asked, { computed: () => {} }), model, text);
  const ways = waysOf(model);
  const drawn = await drawnOf(model.config, model.learned, model.slopes, api);
  return {
    kind: kindOfPositions(model.config), own: inWords(model.config, model.hasAttention), drawn: drawn && { ...drawn, values: [...drawn.values] }, ways: ways.map(({ name }) => name),
    ...(found && { texts: found.texts.map((ids) => ids.map(found.label)), moved: found.moved, verdict: verdict(model, ways, found).join("**"), how: howItIsDone(model, ways, text), table: tableOfOrders(ways, found) }),
  };
}

// All components of the app, by name: bundled into one file, which a browser fetches once for all pages.
import { AttentionView } from "../../../transformer/frontend/attention/view.js";
import { onAppPage } from "../../../transformer/frontend/browser_first.js";
import { FillingView } from "../../../transformer/frontend/filling/view.js";
import { GenerationView } from "../../../transformer/frontend/generation/view.js";
import { InsideView } from "../../../transformer/frontend/inside/view.js";
import { mountAddressBar } from "./address_bar/address_bar.js";
import { mountBatchTable } from "./batch_table/batch_table.js";
import { mountCopyButton } from "./copy_button/copy_button.js";
import { senderOf } from "./event_queue.js";
import { mountEffectHeatmaps } from "./effect_heatmaps/effect_heatmaps.js";
import { mountGlossary } from "./glossary/glossary.js";
import { mountGuide } from "./guide/guide.js";
import { mountHeadGrid } from "./head_grid/head_grid.js";
import { mountInputDrafts } from "./input_drafts/input_drafts.js";
import { mountLessonStep } from "./lesson_step/lesson_step.js";
import { mountLossChart } from "./loss_chart/loss_chart.js";
import { mountMasks } from "./masks/masks.js";
import { mountMatrix } from "./matrix/matrix.js";
import { mountRoomFollower } from "./room_follower/room_follower.js";
import { mountRoomMembership } from "./room_membership/room_membership.js";
import { mountScrollToTop } from "./scroll_to_top/scroll_to_top.js";
import { mountSessionToken } from "./session_token/session_token.js";
import { mountTextComparison } from "./text_comparison/text_comparison.js";
import { mountVotes } from "./votes/votes.js";
import { mountWordOrders } from "./word_orders/word_orders.js";

const instrument = (View) => (component) => onAppPage(component, (root, host) => new View(root, host));

const mounts = {
  attention: instrument(AttentionView),
  filling: instrument(FillingView),
  generation: instrument(GenerationView),
  inside: instrument(InsideView),
  address_bar: mountAddressBar,
  batch_table: mountBatchTable,
  copy_button: mountCopyButton,
  effect_heatmaps: mountEffectHeatmaps,
  glossary: mountGlossary,
  guide: mountGuide,
  head_grid: mountHeadGrid,
  input_drafts: mountInputDrafts,
  lesson_step: mountLessonStep,
  loss_chart: mountLossChart,
  masks: mountMasks,
  matrix: mountMatrix,
  room_follower: mountRoomFollower,
  room_membership: mountRoomMembership,
  scroll_to_top: mountScrollToTop,
  session_token: mountSessionToken,
  text_comparison: mountTextComparison,
  votes: mountVotes,
  word_orders: mountWordOrders,
};

/** What Streamlit calls with a component's data and place. None of its events is lost: they go through a queue. */
export const components = Object.fromEntries(Object.entries(mounts).map(([name, mount]) => [name, (component) => mount({ ...component, setTriggerValue: senderOf(component) })]));

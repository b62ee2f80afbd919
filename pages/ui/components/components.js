// All components of the app, by name. What every page mounts is bundled into one file, which a browser fetches once; the
// others come with the first page that has them.
import { mountShell, mountStepView } from "../host/host.js";
import { mountCopyButton } from "./copy_button/copy_button.js";
import { senderOf } from "./event_queue.js";
import { mountGuide } from "./guide/guide.js";
import { mountInputDrafts } from "./input_drafts/input_drafts.js";
import { mountScrollToTop } from "./scroll_to_top/scroll_to_top.js";
import { mountSessionToken } from "./session_token/session_token.js";

/** @param {"lesson_list" | "lesson_step" | "room"} name */
const ofLessons = async (name) => (await import("./lesson_components.js")).lessonMounts[name];

/** What mounts a component. @type {Record<string, () => any>} */
const mounts = {
  batch_table: async () => (await import("./batch_table/batch_table.js")).mountBatchTable,
  copy_button: () => mountCopyButton,
  glossary: async () => (await import("./glossary/glossary.js")).mountGlossary,
  guide: () => mountGuide,
  head_grid: async () => (await import("./head_grid/head_grid.js")).mountHeadGrid,
  input_drafts: () => mountInputDrafts,
  lesson_list: () => ofLessons("lesson_list"),
  lesson_step: () => ofLessons("lesson_step"),
  loss_chart: async () => (await import("./loss_chart/loss_chart.js")).mountLossChart,
  masks: async () => (await import("./masks/masks.js")).mountMasks,
  matrix: async () => (await import("./matrix/matrix.js")).mountMatrix,
  room_follower: async () => (await import("./room_follower/room_follower.js")).mountRoomFollower,
  room_membership: async () => (await import("./room_membership/room_membership.js")).mountRoomMembership,
  room: () => ofLessons("room"),
  scroll_to_top: () => mountScrollToTop,
  session_token: () => mountSessionToken,
  shell: () => mountShell,
  step_view: () => mountStepView,
  votes: async () => (await import("./votes/votes.js")).mountVotes,
};

/** What Streamlit calls with a component's data and place. None of its events is lost: they go through a queue. */
export async function mountOf(name) {
  const mount = await mounts[name]();
  return (component) => mount({ ...component, setTriggerValue: senderOf(component) });
}

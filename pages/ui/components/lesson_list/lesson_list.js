// Draws the list of lessons on the page Learn.
import { withView } from "../../../../transformer/frontend/dom.js";
import { drawCards } from "../../../../transformer/frontend/lessons/lesson_list.js";

export function mountLessonList({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const host = { open: (name) => setTriggerValue("opened", name), remove: () => setTriggerValue("removed", true) };
  withView(parentElement, ({ root }) => ({ parts: { root } }), ({ parts }) => drawCards(parts.root, data.cards, host));
}

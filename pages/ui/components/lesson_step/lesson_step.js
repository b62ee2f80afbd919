// Draws a step of a lesson on the page Learn, and sends its answers to the server.
import { withView } from "../../../../transformer/frontend/dom.js";
import { StepView } from "../../../../transformer/frontend/lessons/step.js";

class View {
  constructor(parts) {
    this.parts = parts;
    this.view = new StepView(parts.root, { send: (answered) => this.answer(answered), checkAgain: () => this.send("checked", true) });
  }

  update(data, send) {
    this.data = data;
    this.send = send;
    this.view.update(data.step, data.state, data.shows);
  }

  answer(answered) {
    const { step, state, shows } = this.data;
    if (state.phase === null) this.view.update(step, { ...state, answered }, shows); // a room may refuse it
    this.send("answered", { id: state.id, ...answered });
  }
}

export function mountLessonStep({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  withView(parentElement, (parts) => new View(parts), (view) => view.update(data, setTriggerValue));
}

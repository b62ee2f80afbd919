// Hands new data to the view of the same name (live_text.js), and its events back.
import { boxOf } from "../../../../transformer/instrument/box.js";

export default function ({ data, setTriggerValue }) {
  const box = boxOf(data.name);
  box.data = data;
  box.send = setTriggerValue;
  box.deliver?.();
}

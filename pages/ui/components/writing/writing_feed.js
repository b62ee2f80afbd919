// Hands tokens to the view of the same name (writing.js), and its events to Python.
import { boxOf } from "../../../../transformer/frontend/box.js";
import { readRecording } from "../../../../transformer/frontend/recording.js";

export default function ({ data, setTriggerValue }) {
  if (!data) return;
  const recording = readRecording(data);
  const box = boxOf(recording.metadata.name);
  box.feed = recording;
  box.send = setTriggerValue;
  box.deliver?.();
}

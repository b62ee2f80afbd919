// Hands new data to the view of the same name (live_text.js), and its events back: one box a name, for this tab.
export default function ({ data, setTriggerValue }) {
  const boxes = (globalThis.headsupLiveText ??= new Map());
  if (!boxes.has(data.name)) boxes.set(data.name, {});
  const box = boxes.get(data.name);
  box.data = data;
  box.send = setTriggerValue;
  box.deliver?.();
}

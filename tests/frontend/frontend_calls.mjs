// Calls functions of the frontend for `tests/frontend_calls.py`: a line of JSON for each, and one for its result.
import { createInterface } from "node:readline";
import { PageState } from "../../transformer/frontend/page/page_state.js";

const revived = (key, value) => (value?.isLooked ? new PageState(value.search) : value);

for await (const line of createInterface({ input: process.stdin })) {
  const { module, name, args } = JSON.parse(line, revived);
  const found = await import(`../../transformer/frontend/${module}`);
  console.log(JSON.stringify(found[name](...args) ?? null));
}

// Calls functions of the frontend for `tests/frontend_calls.py`: a line of JSON for each, and one for its result. What they ask
// of the API stands between the two: a line for each question, and one for its answer.
import { createInterface } from "node:readline";
import { PageState } from "../../transformer/frontend/page/page_state.js";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const said = (value) => console.log(JSON.stringify(value));
const revived = (key, value) => (value?.isLooked ? new PageState(value.search) : value);

Object.assign(globalThis, { document: { baseURI: "http://app/" } });
globalThis.fetch = async (address, { method = "GET", headers = {}, body = null } = {}) => {
  said({ asks: String(address), method, headers, body });
  const { status, content } = JSON.parse((await lines.next()).value);
  return new Response(Buffer.from(content, "base64"), { status });
};

for (;;) {
  const { value, done } = await lines.next();
  if (done) break;
  const { module, name, args } = JSON.parse(value, revived);
  const found = await import(`../../transformer/frontend/${module}`);
  said({ returns: (await found[name](...args)) ?? null });
}

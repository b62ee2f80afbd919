// Calls functions of the frontend for `tests/frontend_calls.py`: a line of JSON for each, and one for its result. What they ask
// of the API stands between the two: a line for each question, and one for its answer.
import { createInterface } from "node:readline";
import { PageState } from "../../transformer/frontend/page/page_state.js";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const said = (value) => console.log(JSON.stringify(value));
const revived = (key, value) => (value?.isLooked ? new PageState(value.search) : value);

Object.assign(globalThis, { document: { baseURI: "http://app/" } });
/** Answers that a call waits for. What is asked later, as by a timer, nobody answers: its line would be taken for the next call's. */
const pending = new Set();
let isCalled = false;

async function answered(address, { method = "GET", headers = {}, body = null } = {}) {
  said({ asks: String(address), method, headers, body });
  const { status, content } = JSON.parse((await lines.next()).value);
  return new Response(Buffer.from(content, "base64"), { status });
}

globalThis.fetch = async (...question) => {
  if (!isCalled) throw new TypeError("nobody answers between two calls");
  const answer = answered(...question);
  pending.add(answer);
  await answer;
  pending.delete(answer);
  return answer;
};

for (;;) {
  const { value, done } = await lines.next();
  if (done) break;
  const { module, name, args } = JSON.parse(value, revived);
  const found = await import(`../../transformer/frontend/${module}`);
  isCalled = true;
  const returns = (await found[name](...args)) ?? null;
  while (pending.size) await Promise.allSettled(pending);
  isCalled = false;
  said({ returns });
}

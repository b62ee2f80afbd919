// Calls functions of the frontend for `tests/frontend_calls.py`: a line of JSON for each, and one for its result. What they ask
// of the API stands between the two: a line for each question, and one for its answer. Each line has the number of its call.
import { AsyncLocalStorage } from "node:async_hooks";
import { createInterface } from "node:readline";
import { PageState } from "../../transformer/frontend/page/page_state.js";

const said = (value) => console.log(JSON.stringify(value));
const revived = (key, value) => (value?.isLooked ? new PageState(value.search) : value);
const calls = new AsyncLocalStorage();

Object.assign(globalThis, { document: { baseURI: "http://app/" } });
globalThis.fetch = async (address, { method = "GET", headers = {}, body = null } = {}) => {
  const of = calls.getStore();
  if (of.isOver) throw new DOMException("what asked has returned", "AbortError");
  const { status, content } = await new Promise((answer) => {
    of.questions.push(answer);
    said({ call: of.call, asks: String(address), method, headers, body, question: of.questions.length - 1 });
  });
  return new Response(Buffer.from(content, "base64"), { status });
};

async function answered(of, { module, name, args }) {
  try {
    const found = await import(`../../transformer/frontend/${module}`);
    return { returns: (await found[name](...args)) ?? null };
  } catch (error) {
    return { throws: error instanceof Error ? error.stack : String(error) };
  } finally {
    of.isOver = true;
  }
}

let last = null;
for await (const line of createInterface({ input: process.stdin })) {
  const { call, ...told } = JSON.parse(line, revived);
  if ("question" in told) {
    last.questions[told.question](told);
    continue;
  }
  if (last) last.isOver = true;
  const of = { call, questions: [], isOver: false };
  last = of;
  calls.run(of, () => answered(of, told)).then((found) => said({ call, ...found }));
}

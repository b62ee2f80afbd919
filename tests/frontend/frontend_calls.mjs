// Calls functions of the frontend for `tests/frontend_calls.py`: a line of JSON for each, and one for its result. What they ask
// of the API stands between the two: a line for each question, and one for its answer. All have their call's number: a
// function may go on asking when it has returned, and Python may have given a call up.
import { AsyncLocalStorage } from "node:async_hooks";
import { createInterface } from "node:readline";
import { PageState } from "../../transformer/frontend/page/page_state.js";

const current = new AsyncLocalStorage();
const asked = [];
const said = (value) => console.log(JSON.stringify({ call: current.getStore(), ...value }));
const revived = (key, value) => (value?.isLooked ? new PageState(value.search) : value);

Object.assign(globalThis, { document: { baseURI: "http://app/" } });
globalThis.fetch = async (address, { method = "GET", headers = {}, body = null } = {}) => {
  const answered = new Promise((resolve) => asked.push(resolve));
  said({ number: asked.length - 1, asks: String(address), method, headers, body });
  const { status, content } = await answered;
  return new Response(Buffer.from(content, "base64"), { status });
};

async function run({ module, name, args }) {
  try {
    const found = await import(`../../transformer/frontend/${module}`);
    said({ returns: (await found[name](...args)) ?? null });
  } catch (error) {
    said({ raises: error.stack });
  }
}

createInterface({ input: process.stdin }).on("line", (text) => {
  const line = JSON.parse(text, revived);
  if ("answers" in line) asked[line.answers](line);
  else current.run(line.call, run, line);
});

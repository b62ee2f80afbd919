// For tests/benchmarks/javascript.py: a line of JSON on standard input names the models, one on standard output has the figures.
import { readFileSync } from "node:fs";
import { forwardPass } from "../../transformer/frontend/engine/forward_pass.js";
import { DecodeState } from "../../transformer/frontend/engine/generation.js";
import { modelOf, neededFor } from "../../transformer/frontend/engine/model.js";

const { models, rounds, written } = JSON.parse(readFileSync(0, "utf-8"));
const median = (times) => times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)];

/** Milliseconds that something takes, and what it gives. */
function timed(run) {
  const began = performance.now();
  const found = run();
  return { ms: performance.now() - began, found };
}

const figures = models.map(({ name, weights, config, equations, tokens }) => {
  const bytes = readFileSync(weights);
  const { ms: opened, found: model } = timed(() => modelOf(bytes, config, equations));
  const forLogits = neededFor(["logits"], equations);
  const pass = (wanted) => timed(() => forwardPass(model, { tokens }, { wanted })).ms;
  const first = pass(forLogits);
  const [prompt, whole] = [forLogits, null].map((wanted) => median(Array.from({ length: rounds }, () => pass(wanted))));
  const tokensASecond = Array.from({ length: rounds }, () => {
    const state = new DecodeState(model, { tokens });
    state.step();
    const { ms } = timed(() => {
      for (let token = 0; token < written; token++) state.step();
    });
    return (1000 * written) / ms;
  });
  return { name, opened, first, prompt, whole, tokens_a_second: median(tokensASecond) };
});
console.log(JSON.stringify(figures));

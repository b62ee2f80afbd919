// Ablates every head and feed-forward layer of a model, one at a time, as /api/ablation does: a pass each.

import { ApiError } from "../api_error.js";
import { logSumExp } from "../arithmetic.js";
import { isCausal } from "../attention_config.js";
import { checkLogits, likeliest } from "../generation/sampling.js";
import { hookPoints } from "../intervention_checks.js";
import { codeOf, parsed } from "../intervention_codes.js";
import { passInSteps } from "./forward_pass.js";
import { hooksOf } from "./interventions.js";
import { inTurns } from "./live_model.js";
import { neededFor } from "./model.js";
import { predictedPosition, whole } from "./questions.js";
/** @import { LiveModel, Rest } from "./live_model.js" */
/** @import { Question } from "./questions.js" */

/** @typedef {{ loss: number, logits: Float32Array | Float64Array }} Predicted loss: the text's mean; logits: at one position */

/** @param {LiveModel} live @param {Question} question @param {Record<string, any>} values @param {Rest} rest @param {(event: string, data: object) => void} tell */
export async function ablation(live, question, { position: asked = null, token: wished = null }, rest, tell) {
  const { model, config } = live;
  const { tokens, source, codes, begin } = question;
  const position = asked === null ? predictedPosition(live, tokens) : whole("position", asked, 0, tokens.length - 1);
  const parts = hookPoints(model).flatMap((point) => {
    if (point.endsWith("hook_mlp_out")) return [{ point, head: null }];
    return point.endsWith("hook_z") ? Array.from({ length: config.n_heads }, (_, head) => ({ point, head })) : [];
  });
  if (!parts.length) throw new ApiError("This model has no layers, so there is nothing to ablate.");

  /** @param {string[]} changes @returns {Promise<Predicted>} */
  const predicted = async (changes) => {
    const hooks = hooksOf(model, changes);
    const wanted = neededFor(["logits", ...hooks.at.keys()], model.equations);
    const { data } = (await inTurns(passInSteps(model, { tokens, source }, { wanted, hooks, begin }), rest)).get("logits");
    const row = (at) => data.subarray(at * config.vocab_size, (at + 1) * config.vocab_size);
    const losses = tokens.slice(1).map((next, at) => logSumExp(row(at)) - row(at)[next]);
    return { loss: losses.reduce((sum, loss) => sum + loss, 0) / losses.length, logits: row(position).slice() };
  };

  const inForce = codes.map((code) => codeOf(parsed(code).kind, parsed(code).values));
  const plain = await predicted(codes);
  checkLogits(plain.logits);
  const token = wished === null ? likeliest(plain.logits) : whole("token", wished, 0, config.vocab_size - 1);
  const has = { loss: [], logit: [], with: [], without: [], divergence: [] };
  for (const [at, part] of parts.entries()) {
    const code = codeOf("scale", { ...part, factor: 0 });
    const isAblated = inForce.includes(code); // it is compared with the model that has the part back
    const withIt = isAblated ? await predicted(codes.filter((_, other) => inForce[other] !== code)) : plain;
    const without = isAblated ? plain : await predicted([...codes, code]);
    const [log, other] = [withIt, without].map(({ logits }) => {
      const total = logSumExp(logits);
      return Float64Array.from(logits, (logit) => logit - total);
    });
    has.loss.push(without.loss - withIt.loss);
    has.logit.push(without.logits[token] - withIt.logits[token]);
    has.with.push(Math.exp(log[token]));
    has.without.push(Math.exp(other[token]));
    has.divergence.push(log.reduce((sum, each, id) => sum + Math.exp(each) * (each - other[id]), 0));
    tell("progress", { share: (at + 1) / parts.length });
  }
  const finite = Object.fromEntries(Object.entries(has).map(([name, numbers]) => [name, numbers.map((number) => (Number.isFinite(number) ? number : null))]));
  tell("result", { parts, token, ...finite, loss: isCausal(config) && tokens.length > 1 ? finite.loss : null });
}

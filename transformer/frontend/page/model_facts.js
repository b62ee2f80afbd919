// What is known of a model, as rows of a table: its shape, what it was trained on, and how well it does.

import { isCausal } from "../attention_config.js";
import { counted, percent } from "../number_format.js";
import table from "../parameters.json" with { type: "json" };
/** @import { Model } from "./answers.js" */

const TASKS = /** @type {string[]} */ (table.parameters.find(({ name }) => name === "task").options);
const POSITIONS = { alibi: "ALiBi positions", none: "no positions" }; // others have their name: "rotary positions"

/** @param {Model} model @returns {[label: string, value: string][]} rows without those that nothing is known of */
export function factsOf({ about: { config }, card }) {
  const { task = "", corpus = {}, training = {}, parameters = 0, accuracy = null } = card;
  const predicted = isCausal(config) ? (TASKS.includes(task) ? "next token" : task) : "masked tokens";
  const rows = [
    ["Shape", shapeOf(config)],
    ["Size", parameters >= 1e6 ? `${(parameters / 1e6).toFixed(1)} M parameters` : parameters && counted(parameters, "parameter")],
    ["Trained on", corpus.title && `${corpus.title} (${corpus.licence ?? "?"})`],
    ["Language", card.language],
    ["It predicts the", predicted],
    ["Correct answers", accuracy === null ? "" : `${percent(accuracy)} of unseen examples`],
    ["Validation loss", nats(card.validation_loss)],
    ["Training-set loss", nats(card.train_loss)],
    ["Bits per byte", bitsOf(/** @type {any} */ (training.bits_per_byte))],
    ["Steps", training.best_step ?? training.steps],
    ["Trained in", training.seconds === undefined ? "" : `${duration(Number(training.seconds))} on ${training.machine ?? "?"}`],
    ["Train it again", training.command],
  ];
  return rows.filter(([, value]) => value).map(([label, value]) => [label, String(value).slice(0, 300)]);
}

/** "2 layers × 4 heads, 64 wide, rotary positions, context 32" */
function shapeOf(config) {
  const { architecture, n_layers: layers, n_encoder_layers: encoders, n_heads: heads, d_model: width, positions, context_length: context } = config;
  const stacks = architecture === "encoder-decoder" ? `${counted(encoders ?? layers, "encoder layer")} + ${counted(layers, "decoder layer")}` : counted(layers, isCausal(config) ? "layer" : "encoder layer");
  return `${stacks}${layers ? ` × ${counted(heads, "head")}` : ""}, ${width} wide, ${POSITIONS[positions] ?? `${positions} positions`}, context ${context}`;
}

/** @param {number} seconds a card from elsewhere may have anything here */
function duration(seconds) {
  if (!(seconds >= 0)) return "?";
  return seconds >= 90 ? `${Math.round(seconds / 60)} minutes` : counted(Math.max(Math.round(seconds), 1), "second");
}

/** @param {number | null | undefined} loss */
const nats = (loss) => (loss === null || loss === undefined ? "" : `${loss.toFixed(4)} nats per token`);

/** "1.31 of unseen text; the best bigram table takes 1.63, xz 2.01, gzip 2.82": a card from elsewhere may have anything here */
function bitsOf(bits) {
  const [model, bigram, xz, gzip] = ["model", "bigram", "xz", "gzip"].map((name) => bits?.[name]?.toFixed?.(2));
  return model && bigram && xz && gzip && `${model} of unseen text; the best bigram table takes ${bigram}, xz ${xz}, gzip ${gzip}`;
}

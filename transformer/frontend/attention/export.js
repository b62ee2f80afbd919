// Exports the selected head as a picture or a table.

import { composed, csvFile, png, saveBlob } from "../save.js";

const SCORES = { raw: "q·k", scaled: "q·k/√d_head", capped: "capped score", biased: "score with position bias", masked: "masked score" };

function nameOf({ pass, chosen }) {
  return `${pass.title}-${pass.kind === "self" ? "" : `${pass.kind}-`}layer${chosen.layer}-head${chosen.head}`;
}

/** Save the panels with their titles as a PNG file, in the page's colours. */
export async function savePicture(instrument) {
  const { parts, panels, chosen } = instrument;
  const { pictures } = panels;
  const whole = composed(parts.root, `Layer ${chosen.layer}, head ${chosen.head}`, pictures, Math.min(2, pictures.length));
  saveBlob(`${nameOf(instrument)}.png`, await png(whole));
}

/** Save the model's own numbers of the head as a CSV file, with a row per cell. */
export function saveNumbers(instrument) {
  const { pass, chosen } = instrument;
  const steps = pass.steps(chosen.layer, chosen.head);
  if (!steps) return;
  const scores = pass.uniform ? [] : pass.stages.filter((stage) => SCORES[stage]).map((stage) => [SCORES[stage], steps[stage]]);
  const columns = ["query position", "query", "key position", "key", "visible", ...scores.map(([name]) => name), "weight"];
  const rows = Array.from(steps.weights, (weight, at) => {
    const [query, key] = [Math.floor(at / pass.keys), at % pass.keys];
    return [
      pass.offsets.queries + query, pass.labels.queries[query], pass.offsets.keys + key, pass.labels.keys[key],
      pass.visible(chosen.layer, query, key) ? "True" : "False", ...scores.map(([, values]) => values[at]), weight,
    ];
  });
  saveBlob(`${nameOf(instrument)}.csv`, csvFile(columns, rows));
}

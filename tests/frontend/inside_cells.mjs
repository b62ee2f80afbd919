// Recomputes cells for tests/engine/test_inside_numbers.py. Arguments: folders, each with an outline, parts, and cells,
// a JSON file of [name, index]. Writes a list of one JSON object a cell for each folder.
import { readFileSync } from "node:fs";
import { InsidePass } from "../../transformer/frontend/inside/pass.js";
import { readRecording } from "../../transformer/frontend/recording.js";

const found = (pass, sent) => ([name, place]) => {
  const before = pass.needs(name, place);
  const tooEarly = pass.arithmetic(name, place) !== null && before.length > 0;
  const wanted = before.map(([kind, each, head]) => (kind === "slice" ? `${each}[${head}]` : each));
  pass.add({ metadata: {}, tensors: Object.fromEntries(wanted.map((each) => [each, sent.tensors[each]])) });
  const { operation, lines, result, recorded, difference, links, along, rows, mark } = pass.arithmetic(name, place);
  const opened = links.map(({ name: operand, at }) => [operand, at(mark ?? 0)]);
  const lengths = rows.map(({ values }) => values.length === along.length);
  return {
    operation, lines, tooEarly, wanted, opened, drawn: lengths.every(Boolean), cells: pass.cellsOf(name, place),
    result: String(result), recorded: String(recorded), difference: String(difference), words: pass.cellInWords(name, place),
  };
};
const all = process.argv.slice(2).map((folder) => {
  const pass = new InsidePass(readRecording(readFileSync(`${folder}/outline`)));
  const sent = readRecording(readFileSync(`${folder}/parts`));
  return JSON.parse(readFileSync(`${folder}/cells`, "utf-8")).map(found(pass, sent));
});
console.log(JSON.stringify(all));

// Recomputes cells for tests/engine/test_inside_numbers.py. Arguments: outline, parts, a JSON file of [name, index].
// Writes one JSON object a cell.
import { readFileSync } from "node:fs";
import { InsidePass } from "../../transformer/frontend/inside/pass.js";
import { readRecording } from "../../transformer/frontend/recording.js";

const [outline, parts, cells] = process.argv.slice(2);
const pass = new InsidePass(readRecording(readFileSync(outline)));
const sent = readRecording(readFileSync(parts));
const found = JSON.parse(readFileSync(cells, "utf-8")).map(([name, place]) => {
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
});
console.log(JSON.stringify(found));

// Tests the picture of all heads, and tables saved as CSV; tests/pages/test_frontend_modules.py tests that pandas reads them as they were.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { drawOverview } from "../../transformer/frontend/head_overview_picture.js";
import { csv, csvFile } from "../../transformer/frontend/save.js";

test("names and rows, a line each", () => {
  assert.equal(csv(["query", "weight"], [["a", 0.5], ["b", -1e-7]]), "query,weight\r\na,0.5\r\nb,-1e-7\r\n");
  assert.equal(csv(["query"], []), "query\r\n");
});

test("what would be read as something else is quoted", () => {
  const tokens = ["a,b", 'say "so"', "two\nlines", "\r", " ", "end ", "plain", "ñ", ""];
  assert.equal(csv(tokens, []), '"a,b","say ""so""","two\nlines","\r"," ","end ",plain,ñ,\r\n');
});

test("what isn't there is empty, and numbers that aren't finite have a name", () => {
  assert.equal(csv(["a"], [[null], [undefined], [NaN], [Infinity], [-Infinity], [0], [false]]), 'a\r\n""\r\n""\r\nnan\r\ninf\r\n-inf\r\n0\r\nfalse\r\n');
  assert.equal(csv(["a", "b"], [[null, ""]]), "a,b\r\n,\r\n");
});

test("a file tells Excel that it is UTF-8, and none of its texts are taken for formulas", async () => {
  const texts = ["=1+1", "@SUM(A1)", "-2+3", "+x", "\tx", "-", "=", "-0.5", "ñ"];
  const bytes = new Uint8Array(await csvFile(["=a", "b"], texts.map((text) => [text, -1.5])).arrayBuffer());
  assert.deepEqual([...bytes.subarray(0, 3)], [0xef, 0xbb, 0xbf]);
  const [columns, ...rows] = new TextDecoder().decode(bytes).trimEnd().split("\r\n");
  assert.equal(columns, "'=a,b");
  assert.deepEqual(rows, ["'=1+1", "'@SUM(A1)", "'-2+3", "'+x", "'\tx", "-", "=", "-0.5", "ñ"].map((text) => `${text},-1.5`));
});

test("any table is written, for Python to read", () => {
  const { columns, rows } = JSON.parse(readFileSync(join(process.env.HEADSUP_FIXTURES, "table.json"), "utf-8"));
  writeFileSync(join(process.env.HEADSUP_FIXTURES, "table.csv"), csv(columns, rows));
});

test("the picture of all heads has each in its row and column, none on another", () => {
  const drawn = [];
  const context = { fillRect() {}, fillText() {}, drawImage: (...given) => drawn.push(given) };
  globalThis.document = /** @type {any} */ ({ createElement: () => ({ getContext: () => context }) });
  globalThis.getComputedStyle = /** @type {any} */ (() => ({ getPropertyValue: () => "" }));
  const shown = Array.from({ length: 6 }, (_, at) => ({ layer: 2 - Math.floor(at / 2), head: at % 2, caption: "", canvas: at }));
  const { width, height } = drawOverview(/** @type {any} */ ({ root: null, shown, heads: 2, isTable: true, queries: 5, keys: 10 }));
  assert.deepEqual(drawn.map(([at]) => at), [0, 1, 2, 3, 4, 5]);
  const [columns, rows] = [1, 2].map((side) => [...new Set(drawn.map((given) => given[side]))]);
  assert.ok(columns.length === 2 && rows.length === 3);
  for (const [at, left, top, wide, high] of drawn) {
    assert.deepEqual([left, top, wide, high], [columns[at % 2], rows[Math.floor(at / 2)], 160, 80]);
    assert.ok(left + wide <= (columns[(at % 2) + 1] ?? width) && top + high <= (rows[Math.floor(at / 2) + 1] ?? height));
  }
});

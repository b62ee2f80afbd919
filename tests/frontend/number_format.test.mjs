// Tests that a probability is written in the same way in the browser and on the server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { percent } from "../../transformer/frontend/number_format.js";

test("probabilities have as many digits as tell, as in Python", () => {
  for (const [share, written] of JSON.parse(readFileSync(new URL("../percentages.json", import.meta.url), "utf8"))) {
    assert.equal(percent(share), written, String(share));
  }
  assert.equal(percent(NaN), "–");
});

// Tests Play: the scene is a function of time, and its chapters follow the pass.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readRecording } from "../../transformer/frontend/recording.js";
import { focusOf, structureOf } from "../../transformer/frontend/inside/structure.js";
import { InsidePass } from "../../transformer/frontend/inside/pass.js";
import { layOut } from "../../transformer/frontend/inside/layout.js";
import { chaptersOf, cycleOf, endOf, isAtEnd, isRevealed, momentAt, phaseAt, stepFrom, timeOf, zoneOf } from "../../transformer/frontend/inside/animation.js";

const ROOM = { width: 860, height: 700, gutter: 112, margin: 92, below: 32, above: 30 };
const structures = ["shakespeare", "next-vowel", "number-words-en-es", "ladder-4-attention", "ladder-1-bigram", "deep", "parallel"].map((name) => {
  return structureOf(new InsidePass(readRecording(readFileSync(join(process.env.HEADSUP_FIXTURES, `inside-${name}.safetensors`)))).metadata);
});

test("chapters go up, each where the picture has it, whatever is open", () => {
  for (const structure of structures) {
    const places = structure.stacks.flatMap(({ groups }) => ["", groups[1].id, groups.at(-1).parts[0].names[0]]);
    for (const open of places) {
      const layout = layOut(structure, focusOf(structure, open), ROOM);
      const chapters = chaptersOf(structure, open);
      assert.equal(new Set(chapters.map(({ id }) => id)).size, chapters.length);
      let [stack, low] = [null, 0];
      for (const chapter of chapters) {
        const zone = zoneOf(layout, chapter);
        assert.ok(zone.top < zone.bottom && zone.target >= zone.top - 1 && zone.target <= zone.bottom, chapter.id);
        if (zone.stack !== stack) [stack, low] = [zone.stack, zone.stack.bottom + 1];
        assert.ok(zone.bottom <= low + 1e-9 || zone.bottom === low, `${chapter.id} in ${open}`);
        if (!zone.part.rows.length && !zone.part.strip) continue;
        low = chapter.zone === "row" ? zone.bottom : low;
      }
    }
  }
});

test("of what is open every tensor is a chapter", () => {
  const [shakespeare] = structures;
  const ids = chaptersOf(shakespeare, "blocks.1").map(({ id }) => id);
  for (const name of shakespeare.stacks[0].groups[2].parts.flatMap(({ names }) => names)) assert.ok(ids.includes(name), name);
  assert.ok(ids.includes("blocks.0.attn lane") && !ids.includes("blocks.1.attn lane"));
});

test("first a cell, then its token, then all", () => {
  const phases = Array.from({ length: 100 }, (_, at) => phaseAt(2 + at / 100, 5).phase);
  assert.deepEqual([...new Set(phases)], ["cell", "row", "all"]);
  assert.deepEqual([phaseAt(-1, 5).at, phaseAt(99, 5).at], [0, 4]);
  for (let at = 0; at < 500; at++) {
    const { progress } = phaseAt(at / 100, 5);
    assert.ok(progress >= 0 && progress <= 1);
  }
});

test("what has appeared stays", () => {
  for (const [count, token] of [[1, 0], [9, 8], [9, 0], [7, 3]]) {
    let before = 0;
    for (let at = 0; at < 200; at++) {
      const shown = Array.from({ length: count }, (_, column) => isRevealed(phaseAt(at / 200, 1), column, token, count)).filter(Boolean).length;
      assert.ok(shown >= before);
      before = shown;
    }
    const end = Array.from({ length: count }, (_, column) => isRevealed(phaseAt(endOf(0), 1), column, token, count));
    assert.ok(end.every(Boolean));
  }
});

test("a step leads to the end of a chapter, and no further than there are", () => {
  assert.equal(stepFrom(0.3, 1, 4), endOf(0));
  assert.equal(stepFrom(endOf(0), 1, 4), endOf(1));
  assert.equal(stepFrom(endOf(3), 1, 4), endOf(3));
  assert.equal(stepFrom(endOf(2), -1, 4), endOf(1));
  assert.equal(stepFrom(0.2, -1, 4), endOf(0));
});

test("Play moves for a short while, rests for a longer one, and ends with the last chapter", () => {
  for (const count of [4, 14, 120]) {
    const cycle = cycleOf(count);
    const moments = Array.from({ length: 1000 }, (_, at) => momentAt((at * count * cycle) / 1000, count));
    moments.slice(1).forEach((moment, at) => assert.ok(moment >= moments[at]));
    assert.equal(momentAt(1e9, count), endOf(count - 1));
    assert.ok(isAtEnd(endOf(count - 1), count) && !isAtEnd(endOf(count - 2), count));
    assert.equal(Math.floor(momentAt(timeOf(endOf(0), count), count)), 1); // from what is complete the next begins
    for (const moment of [0, 0.5, 1.2, count - 0.5]) assert.ok(Math.abs(momentAt(timeOf(moment, count), count) - moment) < 1e-9);
  }
  const resting = Array.from({ length: 100 }, (_, at) => momentAt((at * cycleOf(14)) / 100, 14)).filter((moment) => moment === endOf(0)).length;
  assert.ok(resting > 50);
  assert.ok(14 * cycleOf(14) <= 20_000 && 120 * cycleOf(120) <= 30_000);
});

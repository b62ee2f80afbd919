// Tests that the clock shows every token once, at the pace, and waits rather than jumps.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Playback, rateOf } from "../../transformer/frontend/generation/playback.js";

/**
 * Shows `there(now)` tokens at a rate, a frame every so many milliseconds; returns when each was shown. lazy: only in frames
 * that come when something may be due, or when more has come. frames: what is noted of each of them.
 *
 * @param {{
 *   rate: number, frame?: number, until: number, there?: (now: number) => number, hidden?: (now: number) => boolean, lazy?: boolean,
 *   frames?: number[],
 * }} options
 */
function watch({ rate, frame = 16, until, there = () => Infinity, hidden = () => false, lazy = false, frames = [] }) {
  const reveal = new Playback();
  const shown = [];
  let [wake, had] = [0, 0];
  for (let now = 0; now < until; now += frame) {
    if (hidden(now) || (lazy && now < wake && there(now) === had)) continue;
    frames.push(now);
    had = there(now);
    const due = reveal.due(now, Math.min(had, 1e9) - shown.length, rate);
    for (let at = 0; at < due; at++) shown.push(now);
    wake = now + reveal.idle(now) - 4;
  }
  return shown;
}

const gaps = (times) => times.slice(1).map((time, at) => time - times[at]);

test("tokens come evenly, the first at once", () => {
  for (const rate of [2, 8, 25, 120]) {
    const shown = watch({ rate, until: 4000 });
    assert.equal(shown[0], 0);
    assert.ok(Math.abs(shown.length - 4 * rate) <= 1, `${shown.length} at ${rate}`);
    assert.ok(gaps(shown).every((gap) => Math.abs(gap - 1000 / rate) <= 16));
  }
});

test("frames in which nothing is due can be left out", () => {
  const late = (now) => 10 * Math.floor(now / 700);
  for (const rate of [2, 8, 25, 120]) {
    for (const there of [() => Infinity, late]) {
      assert.deepEqual(watch({ rate, until: 6000, there, lazy: true }), watch({ rate, until: 6000, there }));
    }
  }
  const frames = [];
  assert.equal(watch({ rate: 2, until: 6000, lazy: true, frames }).length, 12);
  assert.ok(frames.length < 80, `${frames.length} of 375 frames`);
});

test("what comes late is waited for, and not made up for", () => {
  const shown = watch({ rate: 25, until: 4000, there: (now) => (now < 2000 ? 10 : 100) });
  assert.equal(shown.filter((time) => time < 2000).length, 10);
  const after = shown.filter((time) => time >= 2000);
  assert.ok(after[0] <= 2016 && gaps(after).every((gap) => gap >= 24));
  assert.ok(after.length <= 51);
});

test("a tab that nobody sees loses no token and skips none", () => {
  const shown = watch({ rate: 25, until: 9000, there: () => 90, hidden: (now) => now > 1000 && now < 6000 });
  assert.equal(shown.length, 90);
  assert.ok(gaps(shown).every((gap) => gap >= 24));
});

test("without a pace what has come is spread, and a pace is one", () => {
  assert.equal(rateOf("steady", 100), 8);
  assert.equal(rateOf("nonsense", 100), 25);
  assert.equal(rateOf("unbounded", 0), 25);
  assert.equal(rateOf("unbounded", 30), 200);
});

// Tests that a page which is awaited is known until it is drawn, or until it is waited for no more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PageChange } from "../../pages/ui/host/page_change.js";

test("a page is awaited until it is drawn, whatever else is drawn meanwhile", () => {
  const change = new PageChange();
  assert.equal(change.isUnderWay(0), false);
  change.begin("/school/Attention/", 100);
  change.arrived("/school");
  assert.equal(change.isUnderWay(200), true);
  change.arrived("/school/Attention");
  assert.equal(change.isUnderWay(300), false);
});

test("the last of two pages is awaited, and the first page of all has no name", () => {
  const change = new PageChange();
  change.begin("/Masks", 0);
  change.begin("/", 10);
  change.arrived("/Masks");
  assert.equal(change.isUnderWay(20), true);
  change.arrived("");
  assert.equal(change.isUnderWay(30), false);
});

test("a page that never comes is waited for no more", () => {
  const change = new PageChange();
  change.begin("/Masks", 1_000);
  assert.equal(change.isUnderWay(10_999), true);
  assert.equal(change.isUnderWay(11_000), false);
});

test("Back within a page awaits none, unless another was on its way", () => {
  const change = new PageChange();
  change.arrived("/Masks");
  change.go("/Masks/", 0);
  assert.equal(change.isUnderWay(0), false);
  change.begin("/Inside", 10);
  change.go("/Masks", 20);
  assert.equal(change.isUnderWay(30), true);
});

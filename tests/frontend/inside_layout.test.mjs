// Tests where the picture of a pass has its tokens, blocks and tensors, whatever is open.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readRecording } from "../../transformer/frontend/recording.js";
import { poolOf, firstIn, reachOf, weightsOf } from "../../transformer/frontend/inside/arcs.js";
import { columnAt, layOut, streamAt, elementAt, tokenAt } from "../../transformer/frontend/inside/layout.js";
import { attentionCell } from "../../transformer/frontend/inside/attention_link.js";
import { bandsAt, isAlike } from "../../transformer/frontend/inside/transition.js";
import { InsidePass } from "../../transformer/frontend/inside/pass.js";
import { BEGIN, settled } from "../../transformer/frontend/inside/selection.js";
import { focusOf, shortName, structureOf, upFrom } from "../../transformer/frontend/inside/structure.js";
import { stepsTo } from "../../transformer/frontend/inside/breadcrumb.js";
import { fullName, plainName } from "../../transformer/frontend/inside/plain_names.js";

const MODELS = ["shakespeare", "next-vowel", "number-words-en-es", "ladder-4-attention", "ladder-1-bigram", "deep", "parallel", "sandwich", "res-post"];
const ROOM = { width: 860, height: 700, gutter: 112, margin: 92, below: 32, above: 30 };
const recordings = Object.fromEntries(MODELS.map((name) => {
  return [name, readRecording(readFileSync(join(process.env.HEADSUP_FIXTURES, `inside-${name}.safetensors`)))];
}));

const structures = Object.fromEntries(MODELS.map((name) => [name, structureOf(new InsidePass(recordings[name]).metadata)]));
const laidOut = (name, open, room = ROOM) => layOut(structures[name], focusOf(structures[name], open), room);

/** What a click can open in a layout. */
function openable(layout) {
  const found = new Set();
  for (const group of layout.stacks.flatMap(({ groups }) => groups)) {
    found.add(group.target);
    for (const part of group.parts) {
      if (part.header) for (const name of [part.target, ...part.parameters]) found.add(name);
      if (group.isOpen && part.strip) found.add(part.id);
      for (const row of part.rows) found.add(row.name);
    }
  }
  return found;
}

for (const name of MODELS) {
  const structure = structures[name];
  const names = recordings[name].metadata.tensors.map((tensor) => tensor.name);
  const places = ["", ...names, ...structure.stacks.flatMap(({ groups }) => groups.flatMap(({ id, parts }) => [id, ...parts.map((part) => part.id)]))];

  test(`${name}: every tensor and parameter is reached in four clicks`, () => {
    let reached = new Set([""]);
    for (let click = 0; click < 4; click++) reached = new Set([...reached, ...[...reached].flatMap((open) => [...openable(laidOut(name, open))])]);
    assert.deepEqual(names.filter((each) => !reached.has(each)), []);
  });

  test(`${name}: a token keeps its place, whatever is open`, () => {
    const closed = laidOut(name, "");
    for (const open of places) {
      laidOut(name, open).stacks.forEach((stack, at) => {
        for (const token of [0, stack.count - 1]) assert.deepEqual(columnAt(stack, token), columnAt(closed.stacks[at], token));
      });
    }
  });

  test(`${name}: the whole text is in the picture, however long it is and however narrow the screen`, () => {
    const stacks = structure.stacks.map((stack) => ({ ...stack, count: stack.count && 2048 }));
    const room = { ...ROOM, width: 388, gutter: 88, margin: 46 };
    const { stacks: standing } = layOut({ ...structure, stacks }, focusOf(structure, ""), room);
    assert.ok(standing.at(-1).right <= room.width - room.margin);
    for (const stack of standing) {
      const last = columnAt(stack, stack.count - 1);
      assert.ok(last.middle <= stack.right && tokenAt(stack, last.middle) === stack.count - 1);
    }
  });

  test(`${name}: nothing overlaps, and the pass goes up`, () => {
    for (const open of places) {
      const layout = laidOut(name, open);
      for (const stack of layout.stacks) {
        let y = stack.bottom;
        for (const group of stack.groups) {
          assert.equal(group.bottom, y, `${group.id} in ${open}`);
          assert.ok(group.bottom - group.top >= 12);
          let inside = group.bottom;
          for (const part of group.parts) {
            assert.ok(part.bottom <= inside + 1e-9 && part.top >= group.top - 1e-9, `${part.id} in ${open}`);
            inside = part.top;
            const boxes = [...part.rows, ...(part.header ? [part.header] : []), ...(part.rows.length && part.lane ? [part.lane] : [])].sort((one, other) => other.bottom - one.bottom);
            boxes.forEach((box, at) => assert.ok(!at || box.bottom <= boxes[at - 1].top + 1e-9));
          }
          y = group.top;
        }
        assert.ok(y >= ROOM.above - 1e-9);
      }
    }
  });

  test(`${name}: from everything that can be open Escape leads to the model, one step at a time`, () => {
    for (let open of places) {
      const focus = focusOf(structure, open);
      assert.equal(open !== "", focus !== null);
      for (let step = 0; open !== ""; step++) {
        assert.ok(step < 3);
        open = upFrom(structure, open);
      }
    }
  });

  test(`${name}: what is under a place is found again`, () => {
    for (const open of ["", places.at(-1)]) {
      const layout = laidOut(name, open);
      for (const stack of layout.stacks) {
        for (const group of stack.groups) {
          const { middle } = columnAt(stack, stack.count - 1);
          const found = elementAt(layout, middle, (group.top + group.bottom) / 2);
          assert.equal(found.group.id, group.id);
          assert.equal(found.token, stack.count - 1);
        }
      }
    }
    assert.equal(tokenAt({ left: 10, pitch: 5, count: 2 }, 9), null);
  });

  test(`${name}: what reaches the newest token is followed down, and nothing is lost on the way`, () => {
    const pass = new InsidePass(recordings[name]);
    const count = structure.stacks.at(-1).count;
    const reach = reachOf(structure, (id) => weightsOf(pass.arcs(id), null), count - 1);
    const sum = (shares) => shares.reduce((total, share) => total + share, 0);
    const [first, writing] = [structure.stacks[0].prefix, structure.stacks.at(-1).prefix];
    assert.equal(sum(reach.depths[writing].at(-1)), 1);
    const below = first === writing ? sum(reach.depths[writing][0]) : sum(reach.depths[writing][0]) + sum(reach.depths[first][0]);
    assert.ok(Math.abs(below - 1) < 1e-5, String(below));
  });
}

test("thirty layers fold until one is opened", () => {
  const blocks = (open) => laidOut("deep", open).stacks[0].groups.filter(({ kind }) => kind === "block");
  assert.ok(blocks("").length === 30 && blocks("").every(({ isFolded, bottom, top }) => isFolded && bottom - top < 30));
  assert.deepEqual(blocks("blocks.7").filter(({ isFolded }) => !isFolded).map(({ id }) => id), ["blocks.7"]);
  assert.ok(laidOut("deep", "").height < 800);
});

test("an encoder and its decoder stand side by side on one ground", () => {
  const { stacks: [encoder, decoder] } = laidOut("number-words-en-es", "");
  assert.equal(encoder.bottom, decoder.bottom);
  assert.ok(encoder.right < decoder.left - decoder.gutter);
  assert.equal(encoder.pitch, decoder.pitch);
});

test("norms and streams stand where the model has them", () => {
  const first = (name, open = "") => laidOut(name, open).stacks.at(-1).groups.find(({ kind }) => kind === "block").parts[0];
  const [pre, post, none, sandwich, after] = ["shakespeare", "next-vowel", "ladder-4-attention", "sandwich", "res-post"].map((name) => first(name));
  assert.deepEqual([pre, post, none, sandwich, after].map(({ norm }) => norm), ["pre", "post", "none", "sandwich", "res-post"]);
  assert.ok(pre.normAt > pre.strip.bottom); // below: before attention reads
  assert.ok(post.normAt < post.write); // above the sum
  assert.deepEqual([none.normAt, none.normAfterAt, pre.normAfterAt, post.normAfterAt, after.normAt], [null, null, null, null, null]);
  assert.ok(sandwich.normAt > sandwich.strip.bottom);
  for (const { normAfterAt, strip, write } of [sandwich, after]) assert.ok(normAfterAt < strip.top && normAfterAt > write); // before the sum
  assert.equal(structures["ladder-4-attention"].residual, false);
  assert.equal(streamAt(laidOut("ladder-1-bigram", "").stacks[0], 0), laidOut("ladder-1-bigram", "").stacks[0].groups[0].top);
});

test("in a parallel block both sublayers read the same stream, and one sum takes what they give", () => {
  const block = (open, width = ROOM.width) => laidOut("parallel", open, { ...ROOM, width }).stacks[0].groups.find(({ id }) => id === "blocks.0");
  for (const open of ["", "blocks.0.attn", "blocks.0.mlp"]) {
    const [attention, mlp] = block(open).parts;
    assert.deepEqual([attention.read, attention.write], [mlp.read, mlp.write], open);
    assert.ok(attention.read > attention.write);
  }
  const [attention, mlp] = block("").parts;
  assert.ok(attention.span[1] < mlp.span[0]); // neither way leads through the other's box
  assert.equal(block("", 230).parts[0].span, undefined); // where there are no ways, each has all of its width
  const [first, second] = laidOut("shakespeare", "").stacks[0].groups.find(({ id }) => id === "blocks.0").parts;
  assert.ok(first.write > second.read); // elsewhere the second reads what the first has added
});

test("a breadcrumb says every step", () => {
  const titles = (name, open, cell) => stepsTo(focusOf(structures[name], open), cell, "here").map(({ title }) => title);
  assert.deepEqual(titles("shakespeare", ""), ["model"]);
  assert.deepEqual(titles("shakespeare", "blocks.1.attn.hook_q", [1, 2, 3]), ["model", "layer 1", "attention", "queries", "here"]);
  assert.deepEqual(titles("next-vowel", "decoder.blocks.0.cross_attn"), ["model", "decoder layer 0", "cross-attention"]);
  assert.deepEqual(titles("shakespeare", "embed.weight"), ["model", "embedding table"]);
  assert.equal(shortName("decoder.blocks.0.ln_cross.hook_scale"), "ln_cross.scale");
});

test("pooled places follow the blocks that attention was pooled in", () => {
  for (const count of [1, 40, 64, 65, 200, 256]) {
    const places = Math.min(count, 64);
    for (let place = 0; place < places; place++) assert.equal(poolOf(firstIn(place, count, places), count, places), place);
  }
});

test("what is looked at has its place on the page Attention where an attention is", () => {
  const at = (name, open, cell = null) => {
    const [structure, pass] = [structures[name], new InsidePass(recordings[name])];
    return attentionCell({ pass, structure, ...settled({ ...BEGIN, open, cell, token: 2, source: 1 }, structure, pass) });
  };
  const place = { module: "blocks.1.attn", head: null, query: 2, key: null, stage: "weights" };
  assert.deepEqual(at("shakespeare", "blocks.1"), place);
  assert.deepEqual(at("shakespeare", "blocks.1.attn.hook_pattern", [4, 3, 1]), { ...place, head: 4, query: 3, key: 1 });
  assert.deepEqual(at("shakespeare", "blocks.1.attn.hook_scaled_scores"), { ...place, head: 0, stage: "scaled" }); // shown until one is chosen
  assert.deepEqual(at("shakespeare", "blocks.1.attn.hook_z", [3, 5, 7]), { ...place, head: 5, query: 3 });
  assert.deepEqual(at("shakespeare", "blocks.1.attn.hook_rot_k", [1, 5, 7]), { ...place, head: 5, key: 1 });
  assert.deepEqual(at("shakespeare", "blocks.1.attn.qkv.weight", [0, 5, 7, 9]), { ...place, head: 5 });
  assert.equal(at("shakespeare", "").module, "blocks.5.attn"); // whose arcs the model's own sentence tells of
  assert.equal(at("next-vowel", "").module, "decoder.blocks.0.cross_attn");
  assert.deepEqual(at("next-vowel", "decoder.blocks.0.cross_attn.hook_v", [2, 0, 1]), { ...place, module: "decoder.blocks.0.cross_attn", head: 0, query: 0, key: 2 });
  assert.equal(at("next-vowel", "encoder.blocks.0").query, 1); // a token of the source
  for (const open of ["blocks.1.mlp", "blocks.1.mlp.hook_pre", "logits", "hook_embed"]) assert.equal(at("shakespeare", open), null);
  assert.equal(at("ladder-1-bigram", ""), null);
});

test("on the way from one layout to another the bands cover the picture, and begin and end where the groups stand", () => {
  for (const [name, one, other] of [["shakespeare", "", "blocks.2"], ["next-vowel", "decoder.blocks.0", "decoder.blocks.0.mlp.hook_pre"], ["deep", "", "logits"]]) {
    const [from, to] = [laidOut(name, one), laidOut(name, other)];
    assert.ok(!isAlike(from, to) && isAlike(from, laidOut(name, one)));
    for (const share of [0, 0.4, 1]) {
      const bands = bandsAt(from, to, share);
      assert.equal(bands.length, to.stacks.reduce((sum, { groups }) => sum + groups.length + 2, 0));
      const left = Math.min(...bands.map(({ now }) => now.left));
      const column = bands.filter(({ now }) => now.left === left);
      assert.ok(Math.abs(column[0].now.bottom - (from.height + share * (to.height - from.height))) < 1e-9);
      column.slice(1).forEach(({ now }, at) => assert.ok(Math.abs(now.bottom - column[at].now.top) < 1e-9));
      assert.ok(Math.abs(column.at(-1).now.top) < 1e-9);
      for (const { was, is, now } of bands) if (share !== 0.4) assert.ok(Math.abs(now.top - (share ? is : was).top) < 1e-9);
    }
  }
});

test("every tensor of a pass has a plain name, and no two of a sublayer the same; what a sublayer adds is its output", () => {
  for (const [name, { stacks, locations, config }] of Object.entries(structures)) {
    for (const part of stacks.flatMap(({ groups }) => groups.flatMap(({ parts }) => parts))) {
      const plain = part.names.map((each) => plainName(each, config));
      assert.equal(new Set(plain).size, plain.length, `${name}: ${plain}`);
      for (const each of plain) assert.doesNotMatch(each.replace("√d_head", ""), /[._]/);
    }
    for (const tensor of locations.keys()) assert.ok(fullName(tensor, locations.get(tensor), config));
  }
  const structure = structures["number-words-en-es"];
  const full = (tensor) => fullName(tensor, structure.locations.get(tensor), structure.config);
  assert.equal(full("decoder.blocks.1.hook_cross_attn_out"), "Decoder layer 1 cross-attention: output");
  assert.equal(full("decoder.blocks.1.cross_attn.hook_q"), "Decoder layer 1 cross-attention: queries");
  assert.equal(full("decoder.blocks.1.cross_attn.kv.bias"), "Decoder layer 1 cross-attention: b_K, b_V");
  assert.equal(full("encoder.blocks.0.ln1.weight"), "Encoder layer 0 attention: norm's gain");
  assert.equal(full("decoder.blocks.1.mlp.hook_pre"), "Decoder layer 1 feed-forward: pre-activation");
  for (const [name, { stacks }] of Object.entries(structures)) {
    const added = stacks.flatMap(({ groups }) => groups.flatMap(({ kind, parts }) => (kind === "block" ? parts : []))).map(({ out }) => out);
    for (const out of added) assert.match(out, /\.hook_(attn|cross_attn|mlp)_out$/, name);
  }
});

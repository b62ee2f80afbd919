"""Tests that numbers computed by the JavaScript equal the engine's.

Dimensions: head, query, key, d_head.
"""

import base64
import random

import numpy as np
import pytest
import torch

from tests.browser.servers import ROOT
from transformer import Recording, attention_modules, load_checkpoint
from transformer.frontend import FOLDER, bundle
from transformer.inference.context_windows import window_start
from transformer.inference.generation import generate
from transformer.inference.sampling import Sampling

SHIPPED = ROOT / "checkpoints"
TOLERANCE = 1e-5  # of the tensor's largest absolute value
HEADS = 3  # of each kind of attention, picked at random
ENTRY = """
import { attentionSteps, project, uniformWeights, weightedValues } from "%(folder)s/arithmetic.js";
import { readRecording } from "%(folder)s/recording.js";

export function derive(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const { metadata, tensors } = readRecording(bytes);
  const { causal, d, cells } = metadata;
  const window = metadata.window || Infinity;
  const { q, k, v, out } = Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, data]));
  const keys = v.length / d;
  const queries = metadata.queries;
  const steps = q ? attentionSteps({ q, k, d, causal, window }) : { weights: uniformWeights(queries, keys, causal) };
  const z = Array.from({ length: queries }, (_, query) =>
    weightedValues(steps.weights.subarray(query * keys, (query + 1) * keys), v, d).z);
  const at = (matrix) => (matrix ? cells.map(([query, key]) => String(matrix[query * keys + key])) : null);
  return {
    raw: at(steps.raw), scaled: at(steps.scaled), masked: at(steps.masked), weights: at(steps.weights),
    z: z.map((row) => [...row]), result: z.map((row) => [...project(row, out)]),
  };
}
"""


@pytest.fixture(scope="module")
def derive(chromium, tmp_path_factory):
    """`derive(recording)`: what the shipped JavaScript makes of a head's starting points."""
    folder = tmp_path_factory.mktemp("scripts")
    relative = "../" * len(folder.parts[1:]) + str(FOLDER)[1:]
    entry = folder / "entry.js"
    entry.write_text(ENTRY % {"folder": f"./{relative}"}, encoding="utf-8")
    script = bundle(entry)
    page = chromium.new_page()
    page.evaluate(
        """async (script) => {
      const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
      window.derive = (await import(address)).derive;
    }""",
        script,
    )
    yield lambda recording: page.evaluate("(text) => derive(text)", base64.b64encode(recording.to_bytes()).decode())
    page.close()


def inputs_of(checkpoint, prompt):
    """What a model reads when a visitor types this prompt: (tokens,) or (source, text)."""
    tokens = checkpoint.tokenizer.encode(prompt)
    tokens = tokens[window_start(len(tokens), checkpoint.model.config.context_length) :]
    if checkpoint.model.config.architecture != "encoder-decoder":
        return (torch.tensor([tokens]),)
    written = [checkpoint.card.start_token_id]
    steps = generate(
        checkpoint.model,
        tuple(written),
        source=tuple(tokens),
        max_new_tokens=8,
        sampling=Sampling(temperature=0),
        stop_tokens=(checkpoint.card.end_token_id,),
    )
    written += [step.token_id for step in steps]
    return torch.tensor([tokens]), torch.tensor([written[:-1]])


@pytest.mark.parametrize("name", sorted(folder.parent.name for folder in SHIPPED.glob("*/card.json")))
def test_scores_weights_and_what_they_find_are_the_engine_s(derive, name):
    checkpoint = load_checkpoint(SHIPPED / name)
    model, shape = checkpoint.model, checkpoint.model.config
    chosen = random.Random(name)
    inputs = inputs_of(checkpoint, chosen.choice(checkpoint.card.examples))
    with torch.no_grad():
        _, cache = model.run_with_cache(*inputs, names_filter=lambda point: True)
    for kind, modules in attention_modules(shape).items():
        for _ in range(HEADS):
            module, head = chosen.choice(modules), chosen.randrange(shape.n_heads)
            own = {
                point.rpartition(".")[2]: cache[point][0]
                for point in cache
                if point.startswith(f"{module}.")
                and point.count(".") == module.count(".") + 1
                and not point.endswith("hook_mask")
            }
            _, queries, keys = own["hook_pattern"].shape
            cells = [(chosen.randrange(queries), chosen.randrange(keys)) for _ in range(60)]
            found = derive(starting_points(model, module, kind, head, own, cells))
            rows, columns = map(list, zip(*cells, strict=True))
            points = {"raw": "raw_scores", "scaled": "scaled_scores", "masked": "attn_scores", "weights": "pattern"}
            for step, point in points.items():
                if f"hook_{point}" in own:
                    expected = own[f"hook_{point}"][head].numpy()
                    assert_close(np.array(found[step], dtype=float), expected[rows, columns], expected)
            expected = own["hook_z"][:, head].numpy()
            assert_close(np.array(found["z"]), expected, expected)
            expected = own["hook_result"][:, head].numpy()
            assert_close(np.array(found["result"]), expected, expected)


def starting_points(model, module, kind, head, own, cells):
    """All that the browser gets of one head, as a recording."""
    rotated = "rot_" if "hook_rot_q" in own else ""
    shared = head * model.config.kv_heads // model.config.n_heads  # its head of keys and values
    tensors = {
        name: own[point][:, at].numpy().copy()
        for name, point, at in (
            ("q", f"hook_{rotated}q", head),
            ("k", f"hook_{rotated}k", shared),
            ("v", "hook_v", shared),
        )
        if point in own
    }
    weight = model.get_parameter(f"{module}.out.weight").detach().unflatten(-1, (model.config.n_heads, -1))
    tensors["out"] = weight[:, head].numpy().copy()
    window = model.config.window(int(module.split(".")[-2]))
    about = {
        "causal": kind == "decoder" or (kind == "self" and model.config.is_causal),
        "d": tensors["v"].shape[1],
        "cells": cells,
        "queries": own["hook_pattern"].shape[1],
        "window": window,
    }
    return Recording(tensors, about)


def assert_close(found, expected, whole):
    finite = np.isfinite(expected)
    assert np.array_equal(found[~finite], expected[~finite])
    scale = np.abs(whole[np.isfinite(whole)]).max()
    assert np.abs(found[finite] - expected[finite]).max(initial=0) <= TOLERANCE * scale

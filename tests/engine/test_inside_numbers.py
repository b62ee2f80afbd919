"""Tests that the scripts of the page Inside recompute the recorded numbers.

Run by Node, without a browser. Whoever wants more than the sample says how many: HEADSUP_CELLS=5000.
"""

import json
import math
import os
import random
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import MODERN, modern_config, tiny_model, unpadded, viewed_shape
from tests.inside_outlines import arrays_of, labelled_outline, parts_of, pass_of
from transformer import Checkpoint, ModelCard, Tokenizer, load_checkpoint
from transformer.inference.tracing import trace_pass, viewed
from transformer.model.equations import equations
from transformer.model.stacks import segments_of

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted(path.parent.name for path in (ROOT / "checkpoints").glob("*/card.json"))
CELLS = int(os.environ.get("HEADSUP_CELLS", 500))  # of all models together
MOST = 24  # tokens of a prompt
TOLERANCE = 1e-5  # of the tensor's largest absolute value
BERT = {"positions": "learned", "norm": "post", "embed_norm": True, "n_segments": 2, "separator_token_id": 3}
READS_BOTH_WAYS = {
    "windows, both ways": {"attention_windows": (2, 0), "positions": "relative"},
    "bert": {**BERT, "masked_word_head": True, "mlp_gate": True},
}
MODELS = [*SHIPPED, *MODERN, *READS_BOTH_WAYS]


@pytest.fixture(scope="module")
def everything(node, tmp_path_factory):
    """By model: (pass, its tensors, the parts that are sent, what the scripts make of a sample of its cells:
    [(name, place, found)])."""
    folder = tmp_path_factory.mktemp("cells")
    asked = [ask(name, folder / str(at)) for at, name in enumerate(MODELS)]
    script = Path(__file__).parents[1] / "frontend" / "inside_cells.mjs"
    ran = node(script, *(folder / str(at) for at in range(len(asked))))
    assert ran.returncode == 0, ran.stderr
    answers = zip(MODELS, asked, json.loads(ran.stdout), strict=True)
    return {
        name: (*known, [(*cell, each) for cell, each in zip(cells, answer, strict=True)])
        for name, (*known, cells), answer in answers
    }


def ask(name, folder):
    """(pass, its tensors, the parts that are sent, a sample of its cells), which are written for the scripts, too."""
    chosen = random.Random(name)
    if name not in SHIPPED:
        own = READS_BOTH_WAYS.get(name)
        model = tiny_model(architecture="encoder-only", **own) if own else tiny_model(modern_config(name))
        checkpoint = Checkpoint(model, Tokenizer.of_characters("abcdefghijk"), ModelCard(title="x"))
        found = trace_pass(model, unpadded(model.config)[0].tolist())
        names = [each for each in equations(found.config) for _ in range(2)]
    else:
        checkpoint = load_checkpoint(ROOT / "checkpoints" / name)
        found = pass_of(checkpoint, chosen.choice(checkpoint.card.examples), MOST)
        names = sample(found, chosen)
    arrays, parts = arrays_of(found), parts_of(found)
    cells = [(each, [chosen.randrange(size) for size in arrays[each].shape]) for each in names]
    folder.mkdir()
    (folder / "outline").write_bytes(labelled_outline(found, checkpoint).to_bytes())
    (folder / "parts").write_bytes(parts.to_bytes())
    (folder / "cells").write_text(json.dumps(cells), encoding="utf-8")
    return found, arrays, set(parts.tensors), cells


def sample(found, chosen):
    """Names at random: of every operation as many."""
    by_operation = {}
    for name, equation in equations(found.config).items():
        by_operation.setdefault(equation.operation, []).append(name)
    count = math.ceil(CELLS / len(SHIPPED) / len(by_operation))
    for names in by_operation.values():
        chosen.shuffle(names)
    return [names[at % len(names)] for names in by_operation.values() for at in range(count)]


@pytest.mark.parametrize("name", MODELS)
def test_the_arithmetic_of_a_cell_ends_in_the_number_that_was_recorded(everything, name):
    """From the cells that the table names; and only what isn't there yet is asked for, of what is sent."""
    found, arrays, sent, cells = everything[name]
    seen = set()
    for name, place, got in cells:
        where = f"{name} {place}: {got}"
        check_number(found, arrays[name], name, place, got, where)
        check_sources(found, arrays, name, place, got, where)
        assert set(got["wanted"]) <= sent and not seen & set(got["wanted"]), where
        seen |= set(got["wanted"])


def check_number(found, array, name, place, got, where):
    recorded, result = float(array[tuple(place)]), float(got["result"].replace("Infinity", "inf"))
    assert float(got["recorded"].replace("Infinity", "inf")) == recorded, where
    if math.isinf(recorded):
        assert result == recorded and got["difference"] == "0", where
        return
    largest = np.abs(array[np.isfinite(array)].astype(float)).max()
    assert abs(result - recorded) <= TOLERANCE * max(largest, 1), where
    assert float(got["difference"]) == pytest.approx(abs(result - recorded)), where
    assert got["operation"] == equations(found.config)[name].operation
    assert got["lines"] and all("NaN" not in line and "undefined" not in line for line in got["lines"]), where
    assert got["words"] and got["drawn"] and not got["tooEarly"], where


def check_sources(found, arrays, name, place, got, where):
    """The cells that a cell is made of are those of the table."""
    config, equation = found.config, equations(found.config)[name]
    shape = viewed_shape(equation.dims, arrays[name].shape, config)
    unravelled = np.unravel_index(np.ravel_multi_index(place, arrays[name].shape), shape)
    by_dim = dict(zip(equation.dims, unravelled, strict=True))
    read = found.source if name.startswith("encoder.") else found.tokens
    token = int(read[by_dim["pos"]]) if "pos" in by_dim else None
    segment = int(segments_of(found.tokens, config)[by_dim.get("pos", 0)]) if config.n_segments else None
    expected, named = {}, {}
    for operand in equation.sources:
        mask = expected.setdefault(operand.name, np.zeros(arrays[operand.name].shape, bool))
        mask.reshape(tuple(viewed(found, operand).shape))[operand.at(by_dim, token, segment)] = True
    for cell in got["cells"]:
        mask = named.setdefault(cell["name"], np.zeros(arrays[cell["name"]].shape, bool))
        assert len(cell["index"]) == arrays[cell["name"]].ndim
        mask[tuple(slice(None) if at is None else at for at in cell["index"])] = True
    assert expected.keys() == named.keys(), where
    for each, mask in expected.items():
        assert np.array_equal(mask, named[each]), f"{where} reads {each}"
    for each, opened in got["opened"]:
        assert expected[each][tuple(opened)], f"{where} opens {each} {opened}"

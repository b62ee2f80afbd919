"""Tests that damaged or false checkpoints are refused with a sentence, at next to no cost."""

import json
import math
import resource
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.helpers import any_configs
from tests.saved_checkpoints import FILES, checkpoint, refused
from transformer import ModelConfig, build_model, load_checkpoint, save_checkpoint

WEIGHTS = FILES[0]
BOTH_SIDES = {"architecture": "encoder-decoder", "n_encoder_layers": 3, "n_layers": 1, "pad_token_id": 8}


@pytest.fixture(autouse=True)
def cheaply() -> Iterator[None]:
    """No test takes more than 10 seconds of processor time or 300 MB."""
    started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def saved(parent: Path, **shape) -> Path:
    save_checkpoint(parent / "damaged", checkpoint(**shape))
    return parent / "damaged"


def change_json(path: Path, **fields) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **fields}), encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_damaged_or_missing_is_named(copied, name):
    path, content = copied / name, (copied / name).read_bytes()
    another_kind = (
        *(b"null", b"[]", b"3", b'"x"', b"{}", b"[" * 100_000, b'{"a":' * 100_000, "\ufeff{}".encode()),
        *(b"1" * 5000, b"NaN", b"{\x00}", b'{"title": "\xff\xfe"}'),
    )
    for damaged in (b"", content[:7], content[: len(content) * 99 // 100], *another_kind):
        path.write_bytes(damaged)
        refused(copied, name)
    if name != WEIGHTS:
        with path.open("wb") as file:
            file.truncate(10**11)  # a sparse file: it claims 100 GB and takes none
        refused(copied, name, "larger")
    path.unlink()
    refused(copied, f"{name} is missing")
    path.mkdir()
    refused(copied, f"{name} is missing")


@pytest.mark.parametrize(
    ("name", "weight", "words"),
    [
        *(("blocks.1.mlp.up.bias", torch.full((32,), value), "infinite") for value in (math.nan, math.inf, -math.inf)),
        ("blocks.1.mlp.up.bias", torch.full((32,), 1e300, dtype=torch.float64), "not numbers at all, as float32"),
        *(
            ("blocks.1.mlp.up.bias", torch.zeros(32, dtype=dtype), str(dtype))
            for dtype in (torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn)
        ),
        ("blocks.1.ln1.bias", None, "blocks.1.ln1.bias is absent"),
        ("blocks.1.ln1.bias", torch.zeros(9), "blocks.1.ln1.bias is 9 in one, 8 in the other"),
        ("blocks.2.ln1.bias", torch.zeros(8), "blocks.2.ln1.bias"),
        ("encoder.embed.weight", torch.zeros(11, 8), "encoder.embed.weight is 11 × 8 in one, absent in the other"),
    ],
)
def test_weights_that_are_not_the_model_s_are_refused(copied, name, weight, words):
    weights = load_file(copied / WEIGHTS) | {name: weight}
    save_file({key: value for key, value in weights.items() if value is not None}, copied / WEIGHTS)
    refused(copied, WEIGHTS, words)


ANOTHER_SHAPE = [
    *({"d_model": 16}, {"d_ff": 31}, {"vocab_size": 12}, {"context_length": 9}, {"n_layers": 3}, {"n_layers": 0}),
    *({"n_encoder_layers": 4}, {"attention": "uniform"}, {"positions": "learned"}, {"norm": "none"}, {"n_kv_heads": 1}),
    *({"tie_embeddings": True}, {"unembed_bias": True}, {"attention_bias": False}, {"mlp_gate": True}),
    *({"architecture": name} for name in ("decoder-only", "encoder-decoder", "encoder-only")),
]


@given(any_configs(), st.sampled_from(ANOTHER_SHAPE))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_configuration_is_refused_exactly_where_its_weights_would_be_others(tmp_path, config, claims):
    def shapes(fields: dict) -> dict:
        try:
            model = build_model(ModelConfig.from_dict(fields), seed=0)
        except ValueError:  # some don't go together
            return {}
        return {name: weight.shape for name, weight in model.named_parameters()}

    folder, claimed = saved(tmp_path, **config.to_dict()), {**config.to_dict(), **claims}
    (folder / "card.json").write_text('{"title": "t", "start_token_id": 1, "mask_token_id": 2}')
    change_json(folder / "config.json", **claims)
    if shapes(claimed) == shapes(config.to_dict()):
        assert load_checkpoint(folder).model.config == ModelConfig.from_dict(claimed)
    else:
        refused(folder, "config.json")


@pytest.mark.parametrize(
    ("shape", "claims"),
    [
        *(({}, {"d_model": width}) for width in (1, 10**6, 2 * 10**30)),
        *(({}, {"n_layers": layers}) for layers in (10**9, 10**30)),
        *(({}, {"vocab_size": size}) for size in (10**12, 2**62, 10**4000)),
        *(({}, {"context_length": 10**12, "positions": "learned"}), ({}, {"d_ff": 10**15}), ({}, {"n_heads": 10**30})),
        *(({}, {"dropout": math.nan}), ({}, {"positions": {}}), ({}, {"surprise": 1}), ({}, {"architecture": "rnn"})),
        *((BOTH_SIDES, {"n_encoder_layers": layers}) for layers in (10**9, 10**30)),
        *((BOTH_SIDES, {"n_layers": 10**9}), (BOTH_SIDES, {"n_encoder_layers": 1, "n_layers": 3})),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_configuration_that_claims_what_no_file_holds(tmp_path, shape, claims):
    folder = saved(tmp_path, **shape)
    change_json(folder / "config.json", **claims)
    refused(folder, "config.json")


TABLE = {"dtype": "F32", "shape": [11, 8], "data_offsets": [0, 352]}


@pytest.mark.parametrize(
    "header",
    [
        *({"embed.weight": TABLE | {"data_offsets": at}} for at in ([0, 10**12], [352, 0], [-1, 351])),
        *({"embed.weight": TABLE | {"shape": shape}} for shape in ([10**9, 10**9], [2**63, 2**63], "large")),
        *({"embed.weight": TABLE | {"dtype": "F99"}}, {"embed.weight": []}),
        {"embed.weight": TABLE, "unembed.weight": TABLE},  # two that share their bytes
    ],
    ids=str,
)
def test_a_header_that_lies(copied, header):
    content = json.dumps(header).encode()
    (copied / WEIGHTS).write_bytes(struct.pack("<Q", len(content)) + content + bytes(352))
    refused(copied, WEIGHTS)


@pytest.mark.parametrize(
    ("shape", "card", "words"),
    [
        *(({}, {name: 11}, f"{name} 11; there are 11") for name in ("start_token_id", "end_token_id", "mask_token_id")),
        *(({}, {name: [3, 11]}, f"{name} 11") for name in ("more_start_token_ids", "more_end_token_ids")),
        *(({}, {"end_token_id": 10**9}, "end_token_id"), ({}, {"title": 3}, "title")),
        (BOTH_SIDES, {}, "lacks start_token_id"),
        ({"architecture": "encoder-only"}, {}, "lacks mask_token_id"),
    ],
)
def test_a_card_that_does_not_suit_the_model(tmp_path, shape, card, words):
    folder = saved(tmp_path, **shape)
    (folder / "card.json").write_text(json.dumps({"title": "t", **card}))
    refused(folder, "card.json", words)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        *(({"model": model}, "") for model in (None, {"type": "Unknown"})),
        ({"model": {"type": "WordLevel", "vocab": {"a": -1}, "unk_token": "a"}}, ""),
        ({"model": {"type": "WordLevel", "vocab": [], "unk_token": "a"}}, ""),
        *(({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": merges}}, "") for merges in (["a"], [["a", "b"]])),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}}, ""),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}}, ""),
        *(({name: {"type": "Nothing"}}, "") for name in ("pre_tokenizer", "decoder")),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}}, "can't be used"),
        *(({"added_tokens": 3}, ""), ({"version": "9"}, "")),
        *(
            ({"model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "a"}}, "but the model only 11")
            for vocabulary in ({"a": 11}, {"a": 10**9}, {chr(97 + i): i for i in range(12)})
        ),
    ],
    ids=lambda parts: json.dumps(parts)[:60],
)
def test_a_tokenizer_that_the_library_refuses_or_panics_at_or_that_is_another_model_s(copied, parts, words):
    change_json(copied / "tokenizer.json", **parts)
    refused(copied, "tokenizer.json", words)

"""Tests recordings: contents, round trips through bytes, refusal of others."""

import json
import struct
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load, save

from tests.helpers import any_configs, some_inputs, tiny_encoder_decoder, tiny_model, unpadded
from transformer import Intervention, Recording, hook_points, record

TYPES = st.sampled_from(["float32", "float64", "float16", "int64", "int32", "uint8", "bool"])
TENSORS = st.dictionaries(
    st.text(max_size=12).filter(lambda name: name != "__metadata__" and "\ud800" not in name),
    TYPES.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_side=4, min_side=0))),
    max_size=5,
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@dataclass(frozen=True)
class SilencedHead:
    """A head that finds nothing."""

    layer: int
    head: int

    def check(self, config):
        assert self.head < config.n_heads

    def fwd_hooks(self, model, start=None):
        def silence(z, hook):
            z = z.clone()
            z[:, :, self.head] = 0
            return z

        return [(f"blocks.{self.layer}.attn.hook_z", silence)]


def file_of(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# Bytes


@given(TENSORS, st.dictionaries(st.text(max_size=8), JSON, max_size=3))
def test_bytes_bring_back_the_same_recording(tensors, metadata):
    data = Recording(tensors, metadata).to_bytes()
    for read in (Recording.from_bytes(data).tensors, load(data)):
        assert read.keys() == tensors.keys()
        for name, array in tensors.items():
            assert read[name].dtype == array.dtype
            np.testing.assert_array_equal(read[name], array)
    assert Recording.from_bytes(data).metadata == metadata
    assert Recording.from_bytes(save(tensors)).metadata == {}
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    for name, array in tensors.items():
        assert header[name]["data_offsets"][0] % array.dtype.itemsize == 0 or not array.size


def test_a_view_and_a_transposed_array_are_written_as_they_read():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    given = {"part": array[1:3, ::2], "turned": array.T}
    found = Recording.from_bytes(Recording(given, {}).to_bytes()).tensors
    for name, expected in given.items():
        np.testing.assert_array_equal(found[name], expected)


@pytest.mark.parametrize(
    ("recording", "words"),
    [
        (Recording({"__metadata__": np.zeros(2)}, {}), "__metadata__"),
        (Recording({"a": np.array(["text"])}, {}), "can't hold tensors of these types: <U4"),
        (Recording({}, {"labels": {1, 2}}), "labels"),
        (Recording({}, {"loss": float("nan")}), "loss"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(recording, words):
    with pytest.raises(ValueError, match=words):
        recording.to_bytes()


FLOATS = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HOSTILE = {
    "nothing": b"",
    "a length alone": struct.pack("<Q", 2**63),
    "no file": b"PK\x03\x04 what a zip file begins with",
    "a header that isn't there": struct.pack("<Q", 10**6) + b"{}",
    "no JSON": file_of(b"{'a': 1}"),
    "a list": file_of([]),
    "brackets": file_of(b"[" * 100_000),
    "missing data": file_of({"a": FLOATS}),
    "data beyond the end": file_of({"a": {**FLOATS, "data_offsets": [0, 2**60]}}, bytes(8)),
    "data before the beginning": file_of({"a": {**FLOATS, "data_offsets": [-8, 0]}}, bytes(8)),
    "overlapping data": file_of({"a": FLOATS, "b": FLOATS}, bytes(8)),
    "an endless shape": file_of({"a": {**FLOATS, "shape": [2**40, 2**40]}}, bytes(8)),
    "a shape beyond what NumPy counts": file_of({"a": {**FLOATS, "shape": [0, 2**63], "data_offsets": [0, 0]}}),
    "an unknown type": file_of({"a": {**FLOATS, "dtype": "F4096"}}, bytes(8)),
    "a type NumPy lacks": file_of({"a": {**FLOATS, "dtype": "BF16", "shape": [4]}}, bytes(8)),
    "metadata that is no text": file_of({"__metadata__": {"labels": [1]}}),
    "metadata that isn't JSON": file_of({"__metadata__": {"labels": "{"}}),
    "metadata that isn't a number": file_of({"__metadata__": {"labels": "NaN"}}),
    "deep metadata": file_of({"__metadata__": {"labels": "[" * 100_000}}),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_recording_is_refused_in_a_sentence(data):
    with pytest.raises(ValueError, match=r"^This (is no recording: |recording holds ).{5,150}\.$"):
        Recording.from_bytes(data)


@given(st.binary(max_size=60) | st.binary(max_size=40).map(file_of) | JSON.map(file_of), st.integers(0, 80))
def test_any_bytes_are_a_recording_or_refused(data, cut):
    whole = Recording({"a": np.arange(6, dtype=np.float32)}, {"labels": ["é"]}).to_bytes()
    for each in (data, whole[:cut], whole[:cut] + data):
        try:
            assert isinstance(Recording.from_bytes(each), Recording)
        except ValueError as error:
            assert str(error).startswith("This ")


# One pass


@given(any_configs())
def test_it_holds_what_the_pass_computed_without_the_batch(config):
    model = tiny_model(config)
    inputs = tuple(tokens[:1] for tokens in some_inputs(config))
    found = record(model, inputs, None, labels={"text": ("a", "b")})
    _, cache = model.run_with_cache(*inputs)
    assert list(found.tensors) == list(cache)
    for array in found.tensors.values():
        assert array.base is None and array.flags.writeable and array.flags.c_contiguous
    for name, info in hook_points(config).items():
        if name in cache:
            expected = cache[name].detach().reshape(cache[name].shape[-found.tensors[name].ndim :])
            np.testing.assert_array_equal(found.tensors[name], expected)
            assert found.tensors[name].ndim == len(info.shape) - (info.shape[0] == "batch")
    assert found.metadata == {"config": config.to_dict(), "labels": {"text": ["a", "b"]}}
    again = Recording.from_bytes(found.to_bytes())
    assert again.metadata == found.metadata and again.tensors.keys() == found.tensors.keys()


def test_interventions_change_the_pass_and_what_is_recorded():
    model = tiny_model()
    tokens = unpadded(model.config, batch=1)
    silenced = SilencedHead(0, 1), SilencedHead(1, 0)
    assert all(isinstance(each, Intervention) for each in silenced) and hash(silenced) == hash(tuple(silenced))
    names = ["blocks.0.attn.hook_z", "blocks.1.attn.hook_z", "blocks.1.hook_resid_post"]
    before, after = record(model, tokens, names), record(model, tokens, names, interventions=silenced)
    assert not after.tensors[names[0]][:, 1].any() and not after.tensors[names[1]][:, 0].any()
    np.testing.assert_array_equal(after.tensors[names[0]][:, 0], before.tensors[names[0]][:, 0])
    assert not np.allclose(after.tensors[names[2]], before.tensors[names[2]])
    np.testing.assert_array_equal(record(model, tokens, names).tensors[names[2]], before.tensors[names[2]])


def test_bfloat16_leaves_as_float32():
    model = tiny_model()
    with torch.autocast("cpu", torch.bfloat16):
        found = record(model, unpadded(model.config, batch=1), "blocks.0.attn.hook_q")
    assert found.tensors["blocks.0.attn.hook_q"].dtype == np.float32


@pytest.mark.parametrize("both", [False, True])
def test_a_batch_of_several_texts_is_refused(both):
    model = tiny_encoder_decoder() if both else tiny_model()
    several = unpadded(model.config, batch=2)
    with pytest.raises(ValueError, match=r"of one text; this batch has 2\."):
        record(model, (several[:1], several) if both else several, None)
    with pytest.raises(ValueError, match="no hook point"):
        record(model, (several[:1], several[:1]) if both else several[:1], "blocks.9.attn.hook_q")

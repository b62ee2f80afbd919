"""Tests recordings: contents, round trips through bytes, refusal of others; and those of a whole pass."""

import dataclasses
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

from tests.helpers import any_configs, some_inputs, some_pass, some_text, tiny_encoder_decoder, tiny_model
from transformer import (
    Recording,
    Scale,
    attention_modules,
    hook_points,
    overwritten_values,
    record,
    record_pass,
    trace_pass,
)
from transformer.inference import pass_recording
from transformer.inference.circuits import circuits_of, ov_circuit, qk_circuit
from transformer.inference.interventions import hooks_of
from transformer.inference.pass_outline import tensors_of
from transformer.inference.pass_recording import LARGE, circuit_parts, fitted, is_whole, pass_of, whole_view

TYPES = st.sampled_from(["float32", "float64", "float16", "int64", "int32", "uint8", "bool"])
TENSORS = st.dictionaries(
    st.text(max_size=12).filter(lambda name: name != "__metadata__" and "\ud800" not in name),
    TYPES.flatmap(
        lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_side=4, min_side=0)).map(np.transpose)
    ),
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
    """A head that finds nothing: an intervention that is none of the package's."""

    layer: int
    head: int

    def check(self, config):
        assert self.head < config.n_heads

    def fwd_hooks(self, model, start=None):
        def silence(z, hook):
            z[:, :, self.head] = 0

        return [(f"blocks.{self.layer}.attn.hook_z", silence)]


def file_of(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


FLOATS = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HOSTILE = {
    "nothing": b"",
    "a length alone": struct.pack("<Q", 2**63),
    "a header that isn't there": struct.pack("<Q", 10**6) + b"{}",
    "no JSON": file_of(b"{'a': 1}"),
    "a list": file_of([]),
    "brackets": file_of(b"[" * 100_000),
    "data beyond the end": file_of({"a": {**FLOATS, "data_offsets": [0, 2**60]}}, bytes(8)),
    "overlapping data": file_of({"a": FLOATS, "b": FLOATS}, bytes(8)),
    "an endless shape": file_of({"a": {**FLOATS, "shape": [2**40, 2**40]}}, bytes(8)),
    "a shape beyond what NumPy counts": file_of({"a": {**FLOATS, "shape": [0, 2**63], "data_offsets": [0, 0]}}),
    "a type NumPy lacks": file_of({"a": {**FLOATS, "dtype": "BF16", "shape": [4]}}, bytes(8)),
    "metadata that is no text": file_of({"__metadata__": {"labels": [1]}}),
    "metadata that isn't JSON": file_of({"__metadata__": {"labels": "{"}}),
    "metadata that isn't a number": file_of({"__metadata__": {"labels": "NaN"}}),
    "deep metadata": file_of({"__metadata__": {"labels": "[" * 100_000}}),
}


class TestBytes:
    @given(TENSORS, st.dictionaries(st.text(max_size=8), JSON, max_size=3))
    def test_they_bring_back_the_same_recording(self, tensors, metadata):
        data = Recording(tensors, metadata).to_bytes()
        for read in (Recording.from_bytes(data).tensors, load(data)):
            assert read.keys() == tensors.keys()
            for name, array in tensors.items():
                assert read[name].dtype == array.dtype
                np.testing.assert_array_equal(read[name], array)
        assert Recording.from_bytes(data).metadata == metadata
        reordered = Recording(dict(reversed(tensors.items())), dict(reversed(metadata.items())))
        assert reordered.to_bytes() == data
        length = int.from_bytes(data[:8], "little")
        assert length % 8 == 0
        header = json.loads(data[8 : 8 + length])
        for name, array in tensors.items():
            assert header[name]["data_offsets"][0] % array.dtype.itemsize == 0 or not array.size

    @pytest.mark.parametrize(
        ("recording", "words"),
        [
            (Recording({"__metadata__": np.zeros(2)}, {}), "__metadata__"),
            (Recording({"a": np.array(["text"])}, {}), "can't hold tensors of these types: <U4"),
            (Recording({}, {"labels": {1, 2}}), "labels"),
            (Recording({}, {"loss": float("nan")}), "loss"),
        ],
    )
    def test_what_they_cannot_hold_is_refused(self, recording, words):
        with pytest.raises(ValueError, match=words):
            recording.to_bytes()

    @pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
    def test_what_is_no_recording_is_refused_in_a_sentence(self, data):
        with pytest.raises(ValueError, match=r"^This (is no recording: |recording holds ).{5,150}\.$"):
            Recording.from_bytes(data)

    @given(st.binary(max_size=60) | st.binary(max_size=40).map(file_of) | JSON.map(file_of), st.integers(0, 80))
    def test_any_bytes_are_a_recording_or_refused(self, data, cut):
        whole = Recording({"a": np.arange(6, dtype=np.float32)}, {"labels": ["é"]}).to_bytes()
        for each in (data, whole[:cut], whole[:cut] + data):
            try:
                assert isinstance(Recording.from_bytes(each), Recording)
            except ValueError as error:
                assert str(error).startswith("This ")
        assert Recording.from_bytes(save({"a": np.zeros(1)})).metadata == {}


class TestRecord:
    @given(any_configs(), st.booleans())
    def test_it_has_what_the_pass_computed_without_the_batch(self, config, is_changed):
        model = tiny_model(config)
        inputs, (parameter, *_) = tuple(tokens[:1] for tokens in some_inputs(config)), dict(model.named_parameters())
        changes = [Scale(model.hook_names()[0], factor=0.5)] if is_changed else []
        labels = {"text": ("a", "b")}
        found = record(model, inputs, None, labels=labels, interventions=changes, parameters=[parameter])
        _, cache = model.run_with_cache(*inputs, fwd_hooks=hooks_of(changes, model))
        assert list(found.tensors) == [*cache, parameter]
        for name, array in found.tensors.items():
            assert array.base is None and array.flags.writeable and array.flags.c_contiguous
            shape = hook_points(config)[name].shape if name in cache else ""
            expected = cache[name] if name in cache else model.get_parameter(name).detach()
            assert name not in cache or array.ndim == len(shape) - (shape[0] == "batch")
            np.testing.assert_array_equal(array, expected.reshape(expected.shape[-array.ndim :]))
        changed = [dataclasses.asdict(values) for values in overwritten_values(changes, config)]
        about = {"config": config.to_dict(), "labels": {"text": ["a", "b"]}}
        assert found.metadata == about | ({"changed": changed} if is_changed else {})
        assert Recording.from_bytes(found.to_bytes()).metadata == json.loads(json.dumps(found.metadata))

    @pytest.mark.parametrize("model", [tiny_model(), tiny_encoder_decoder()])
    def test_what_can_t_be_is_said(self, model):
        one, several = (
            some_inputs(model.config, lambda *_, n=n, **__: torch.ones(n, 3, dtype=torch.long)) for n in (1, 2)
        )
        with pytest.raises(ValueError, match=r"of one text; this batch has 2\."):
            record(model, (*one[:-1], several[-1]), None)
        with pytest.raises(ValueError, match="no hook point"):
            record(model, one, "blocks.9.attn.hook_q")
        with pytest.raises(ValueError, match="no parameter"):
            record(model, one, None, parameters=["blocks.9.attn.out.weight"])


def named(tokens):
    return [f"t{token}" for token in tokens]


class TestAWholePass:
    @given(any_configs())
    def test_comes_back_from_its_bytes(self, config):
        model, text = tiny_model(config), some_text(config)
        there = Recording.from_bytes(record_pass(model, *text, labels=named).to_bytes())
        assert is_whole(there) and there.metadata["labels"]["text"] == named(text[0])
        again, found = pass_of(there), trace_pass(model, *text)
        assert again.config == config
        assert torch.equal(again.tokens, found.tokens) and torch.equal(again.source, found.source)
        assert again.tensors.keys() == found.tensors.keys()
        assert all(torch.equal(again.tensors[name], tensor) for name, tensor in found.tensors.items())

    def test_what_it_lacks_is_said(self):
        whole = record_pass(tiny_model(), [3, 1])
        for name in ("blocks.1.attn.hook_z", "unembed.weight", "probabilities"):
            less = {other: array for other, array in whole.tensors.items() if other != name}
            with pytest.raises(ValueError, match=f"lacks {name}; record_pass"):
                pass_of(Recording(less, whole.metadata))

    @given(any_configs(), st.booleans())
    def test_a_view_has_all_that_it_could_ask_for(self, config, has_room):
        found, labels = some_pass(config), named(range(config.vocab_size))
        with pytest.MonkeyPatch.context() as patch:
            if not has_room:
                patch.setattr(pass_recording, "CIRCUIT_BYTES", 100)
            sketched, whole = whole_view(found, labels, mask_token_id=3)
        for name, info in tensors_of(config, len(found.tokens), len(found.source)).items():
            assert whole.tensors[name].shape == info.sizes
        logits, names = found.tensors["logits"], whole.metadata["attribution"]["names"]
        for pos, row in enumerate(sketched.tensors["next"]):
            for token in row:
                shares = whole.tensors[f"attribution[{pos}, {token}]"]
                assert len(shares) == len(names)
                assert shares.sum() == pytest.approx(float(logits[pos, token]), abs=1e-3)
        modules = [module for of_kind in attention_modules(config).values() for module in of_kind]
        kinds = [(kind, module) for module in modules for kind in circuits_of(config, module)]
        expected = {f"circuit[{kind}, {module}, {head}]" for kind, module in kinds for head in range(config.n_heads)}
        circuits = {name.rpartition(".")[0] for name in whole.tensors if name.startswith("circuit")}
        assert circuits == (expected if has_room else set())
        assert len(whole.metadata["checks"]) > 0 and sketched.metadata["vocabulary"] == labels
        assert sketched.metadata["labels"]["text"] == [labels[token] for token in found.tokens.tolist()]

    @given(any_configs(), st.integers(0, 200_000))
    def test_no_more_is_left_out_than_has_to_be(self, config, most):
        infos = tensors_of(config, 9, 4)
        fit = fitted(infos, most)
        bytes_of = {name: int(np.prod(info.sizes)) * (1 if "mask" in name else 4) for name, info in infos.items()}
        assert fit.size == sum(size for name, size in bytes_of.items() if name not in fit.names)
        assert fit.size <= most or fit.kinds == LARGE
        if fit.kinds:
            less = {name for name in fit.names if name.endswith(fit.kinds[-1])} or {
                name for name in fit.names if infos[name].kind == "parameter"
            }
            assert fit.size + sum(bytes_of[name] for name in less) > most
        assert all(infos[name].sizes[1:] for name in fit.names)  # biases and gains are small

    @pytest.mark.parametrize("most", [5, 100])
    @pytest.mark.parametrize(("kind", "make"), [("qk", qk_circuit), ("ov", ov_circuit)])
    def test_a_circuit_is_sent_as_its_factors_of_the_text_s_and_the_strongest_tokens(
        self, kind, make, most, monkeypatch
    ):
        monkeypatch.setattr(pass_recording, "MOST_TOKENS", most)
        model, name = tiny_model(positions="rotary"), f"circuit[{kind}, blocks.1.attn, 1]"
        parts = circuit_parts(model, kind, "blocks.1.attn", 1, [7, 7, 2])
        full, (rows, columns) = (
            make(model, "blocks.1.attn", 1).full(),
            (parts[f"{name}.{of}"] for of in ("rows", "columns")),
        )
        assert {2, 7} <= set(rows.tolist()) & set(columns.tolist()) and len(rows) == min(most, len(full))
        product = parts[f"{name}.left"] @ parts[f"{name}.right"].T
        np.testing.assert_allclose(product, full[rows][:, columns], atol=1e-6)
        deviation, magnitude = parts[f"{name}.check"]
        assert deviation < 1e-12 and magnitude == pytest.approx(float(full[rows][:, columns].abs().max()))

"""Tests that an uploaded model takes no more memory than was counted."""

import tracemalloc
import weakref
from collections.abc import Callable

import pandas as pd
import pytest
import torch
from hypothesis import given
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pages.ui.computations import activations, masked_predictions
from pages.ui.models import attention_kinds
from pages.ui.models.library import OpenModel
from tests.api.cases import parts_of_attention
from tests.helpers import any_configs, tiny_config, tiny_model
from transformer import (
    Checkpoint,
    CheckpointError,
    ModelCard,
    Recording,
    Sampling,
    Tokenizer,
    attention_modules,
    generate,
)
from transformer.api import cache, generated_texts, outlines
from transformer.checkpoints.archive import LARGEST_IN_USE, pack_checkpoint, unpack_checkpoint
from transformer.checkpoints.memory_footprint import largest_use, recorded_numbers

BOTH_SIDES = {"architecture": "encoder-decoder"}


def full_inputs(config) -> list[torch.Tensor]:
    """Tokens that fill the context, for encoder and decoder."""
    tokens = (torch.arange(config.context_length) % config.vocab_size)[None]
    return [tokens] * (1 if config.architecture == "decoder-only" else 2)


@given(any_configs())
def test_what_is_counted_is_what_a_pass_records(config):
    model = tiny_model(config)
    with torch.no_grad():
        _, recorded = model.run_with_cache(*full_inputs(config), names_filter=lambda name: True)
    numbers = sum(
        tensor.shape[-2:].numel() if name.endswith("hook_mask") else tensor.numel() for name, tensor in recorded.items()
    )
    if config.n_layers and config.n_encoder_layers != 0:
        assert recorded_numbers(config) == numbers
    else:  # a layer more than there is
        assert recorded_numbers(config) > numbers


def everything_that_pages_do(model: OpenModel) -> list[Callable[[], object]]:
    """Each of the things pages ask of a model, on texts that fill its context, one after another."""
    shape = model.checkpoint.model.config
    tokens = tuple(full_inputs(shape)[0][0].tolist())
    source = tokens if shape.architecture == "encoder-decoder" else ()
    begun, room = tokens[:-1] or tokens, max(shape.context_length - 2, 0)

    def record_everything():
        with torch.no_grad():
            return model.checkpoint.model.run_with_cache(*full_inputs(shape), names_filter=lambda name: True)

    def draw_a_head(kind):
        parts = parts_of_attention(model, source, kind, ["head", 0, 0], ["row", 0, 0, len(tokens) - 1], tokens=tokens)
        return outlines.overview(model, tokens, source, kind).to_bytes(), Recording(parts, {}).to_bytes()

    def draw_positions():
        if (table := activations.position_table(model)) is not None:
            frame = pd.DataFrame(table, columns=[f"dimension {i}" for i in range(table.shape[1])])
            return frame, frame.to_csv(index=False).encode()

    def write():
        kind = attention_kinds.shown_kind(shape, "cross", among=("self", "cross"))
        module = attention_modules(shape)[kind][0] if kind else None
        options = {"names_filter": f"{module}.hook_pattern" if module else (), "sampling": Sampling(seed=1)}
        steps = generate(model.checkpoint.model, begun, source=source or None, max_new_tokens=3, **options)
        told = [generated_texts.step_json(step, model.checkpoint.tokenizer, module, 0) for step in steps]
        return told, generated_texts.scores(model, begun, source, 1, Sampling(seed=1), ()).to_bytes()

    def pad(side):
        return masked_predictions.padding_effect(model, tokens[:room], 2, side, causal=False, padding=True)

    asked = [
        *(record_everything, draw_positions, write),
        lambda: activations.next_token(model, tokens, source),
        lambda: generated_texts.scores(model, tokens + tokens[:2], source, 1, Sampling(), ()),
        lambda: activations.answer(model, tokens[:-2] or tokens, source),
        lambda: masked_predictions.predict_text(model, tokens, tokens[1:], source),
        *(lambda kind=kind: draw_a_head(kind) for kind in attention_kinds.kinds_of(shape)),
    ]
    return asked + [lambda side=side: pad(side) for side in ("left", "right") if shape.n_layers and room]


class Allocations(TorchDispatchMode):
    """Counts the bytes of all tensors that live, and the most there were at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most = self._held = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **(kwargs or {}))
        given = [tensor for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, torch.Tensor)]
        known = self._known | {tensor.untyped_storage().data_ptr() for tensor in given}
        for tensor in tree_leaves(results):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in known:
                storage = tensor.untyped_storage()
                self._change(storage.data_ptr(), storage.nbytes())
                weakref.finalize(storage, self._change, storage.data_ptr(), -storage.nbytes())
        return results

    def _change(self, place: int, number: int) -> None:
        (self._known.add if number >= 0 else self._known.discard)(place)
        self._held += number
        self.most = max(self.most, self._held)


def peak_of(work: Callable[[], object]) -> int:
    """Bytes that PyTorch and Python (and NumPy with it) take at most, at any one time, beside what was there before."""
    tracemalloc.start()
    with Allocations() as tensors:
        result = work()
    most = tensors.most + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del result
    return most


def test_the_measure_sees_what_lives_at_once(warm):
    def work():
        x = torch.ones(250_000).view(500, 500).double()  # 1 MB, then 2 more, and then the first is gone
        return (x + 1).numpy().copy()  # 2 MB more, and 2 MB of NumPy's

    assert 6e6 <= peak_of(work) < 6.3e6


OF_A_CALL, OF_A_TENSOR = 200_000, 2_000
"""Bytes of Python objects, of which small tensors mostly consist."""


@pytest.fixture(scope="module")
def warm():
    """What libraries import and keep at their first use is of no model's making."""
    for architecture in ("decoder-only", "encoder-decoder"):
        with Allocations():
            for work in everything_that_pages_do(own_model(tiny_model(architecture=architecture))):
                work()


@pytest.fixture
def nothing_kept(monkeypatch):
    """Pages compute everything anew."""
    cache.clear()
    monkeypatch.setattr(cache, "OWN_BYTES", 0)
    yield
    cache.clear()


def own_model(model) -> OpenModel:
    tokenizer = Tokenizer.of_characters("\0")
    return OpenModel("own", "own", Checkpoint(model, tokenizer, ModelCard(title="Own", start_token_id=0)), is_own=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"n_layers": 1, "vocab_size": 5_000, "context_length": 20},
        {"n_heads": 16, "d_model": 16, "context_length": 60, "d_ff": 0, "attention": "uniform"},
        {"n_layers": 3, "n_heads": 16, "d_model": 16, "n_kv_heads": 1, "context_length": 60, "norm": "post"},
        {"n_layers": 1, "context_length": 60, "d_ff": 2_000, "positions": "none"},
        {"n_layers": 0, "d_model": 600, "n_heads": 1},
        {"n_encoder_layers": 4, "n_layers": 1, "context_length": 60, **BOTH_SIDES},
    ],
    ids=str,
)
def test_what_is_counted_is_not_far_from_what_is_taken(warm, nothing_kept, fields):
    """An extreme model of each kind: enough is counted for it, and not many times what it takes."""
    model = tiny_model(**fields)
    counted = largest_use(model.config, model.parameter_count())
    assert counted / 6 < peak_of_anything(model) <= counted


def peak_of_anything(model) -> int:
    """Bytes that a model takes at most, its weights included, and the objects that PyTorch makes for it not."""
    objects = OF_A_CALL + OF_A_TENSOR * len(model.hook_names())
    return 4 * model.parameter_count() - objects + max(map(peak_of, everything_that_pages_do(own_model(model))))


MUCH = "too large to look into here: it would take more than 256 MB"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_layers": 0, "vocab_size": 200_000, "d_model": 2, "n_heads": 1, "context_length": 1_024}, MUCH),  # logits
        ({"n_layers": 1, "n_heads": 64, "d_model": 64, "context_length": 512, "d_ff": 0}, MUCH),  # scores
        ({"n_layers": 1, "n_heads": 1, "d_model": 2, "context_length": 1_024, "d_ff": 60_000}, MUCH),  # hidden layer
        ({"n_layers": 0, "n_heads": 1, "d_model": 60_000, "context_length": 1}, MUCH),  # columns
        ({"n_layers": 0, "n_heads": 1, "d_model": 2, "context_length": 1_024}, MUCH),  # rows and columns
        ({"n_layers": 0, "n_encoder_layers": 64, "d_model": 4, "context_length": 512, **BOTH_SIDES}, MUCH),
        ({"n_layers": 65}, "claims more than 64 layers"),
        ({"n_layers": 0, "n_encoder_layers": 65, **BOTH_SIDES}, "claims more than 64 layers"),
        ({"n_heads": 65, "d_model": 130}, "claims more than 64 heads"),
        ({"context_length": 1_025}, "claims more than 1,024 tokens"),
    ],
    ids=str,
)
def test_a_small_file_of_a_model_that_takes_much_or_can_t_be_drawn_is_refused(fields, message):
    """Its weights are all zeros, which pack to next to nothing, stored."""
    model = tiny_model(tie_embeddings=True, **fields)
    for weight in model.parameters():
        weight.data.zero_()
    with pytest.raises(CheckpointError, match=message):
        unpack_checkpoint(pack_checkpoint(own_model(model).checkpoint))


def test_there_is_room_for_honest_models():
    fields = {"n_layers": 6, "n_heads": 6, "d_model": 384, "context_length": 256, "vocab_size": 90}
    assert largest_use(tiny_config(**fields), 10_800_000) < LARGEST_IN_USE
    assert largest_use(tiny_config(vocab_size=20_000, d_model=128, context_length=64), 6_000_000) < LARGEST_IN_USE
    fields = {"n_layers": 8, "n_heads": 4, "d_model": 64, "context_length": 64, **BOTH_SIDES}
    assert largest_use(tiny_config(**fields), 10**6) < LARGEST_IN_USE

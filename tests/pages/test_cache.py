"""Tests the cache of models: bounded, computed once, read-only, separate for visitors' models."""

import gc
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.ui.computations import activations, masked_predictions
from pages.ui.models import library
from pages.ui.models.model_cache import cached
from pages.ui.session import visitor_models
from tests.app_driver import use
from tests.tiny_models import save_pair, save_tiny
from transformer import Sampling
from transformer.api import cache, outlines, tensors
from transformer.api.cache import Cache, bytes_of, frozen
from transformer.api.generated_texts import scores
from transformer.api.open_models import OpenModel

TOKENS = (1, 2, 3, 4)


def array(size: int) -> np.ndarray:
    return np.zeros(size, dtype=np.uint8)


# The cache


@given(st.integers(0, 3_000), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1_500)), max_size=40))
def test_it_keeps_the_most_recently_used_that_its_bytes_have_room_for(limit, requests):
    found, kept = Cache(limit), {}
    for key, size in requests:
        answered = found.get(key, lambda size=size: array(size))
        if key in kept:
            assert answered is kept[key], "it is computed once"
        kept[key] = kept.pop(key, answered)
        needed = {each: bytes_of(each) + bytes_of(value) for each, value in kept.items()}
        if needed[key] > limit:
            del kept[key]  # too large to be kept, so nothing goes for it
        while sum(needed[each] for each in kept) > limit:
            del kept[next(iter(kept))]
        assert found.size == sum(needed[each] for each in kept) <= limit and len(found) == len(kept)
        assert not [each for each in range(9) if each not in kept and found.known(each) is not None]


def together(*functions):
    """What these return, each on a thread of its own."""
    answers = {}
    threads = [threading.Thread(target=lambda f=f: answers.setdefault(f, f())) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [answers[function] for function in functions]


def test_a_key_is_computed_once_however_many_ask_at_once_and_two_keys_do_not_wait_for_each_other():
    found, computed, begun, other_done = Cache(10_000), [], threading.Barrier(8), threading.Event()

    def compute():
        computed.append(1)
        assert other_done.wait(30)
        return array(10)

    def other():
        time.sleep(0.1)
        found.get("other", lambda: array(1))
        other_done.set()

    asks = [lambda: (begun.wait(30) and None) or found.get("key", compute) for _ in range(8)]
    *answers, _ = together(*asks, other)
    assert computed == [1] and all(answer is answers[0] for answer in answers)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_who_waited_for_one_that_failed_computes_for_itself(error):
    """The first may have ended because its visitor left the page."""
    found, computing = Cache(10_000), threading.Event()

    def fail():
        computing.set()
        time.sleep(0.1)
        raise error

    def first():
        with pytest.raises(type(error)):
            found.get("key", fail)

    def second():
        assert computing.wait(30)
        return found.get("key", lambda: array(7))

    _, answer = together(first, second)
    assert answer.size == 7
    assert found.get("key", fail) is answer  # and no error is remembered


@dataclass(frozen=True)
class Pair:
    one: np.ndarray
    other: dict


def test_what_is_kept_can_not_be_changed_and_is_counted_through_and_through():
    whole = np.zeros((100, 100))
    value = frozen(Pair(whole[0], {"a": [np.ones(3)]}))
    assert value.one.base is None  # the other 99 rows can go
    for part in (value.one, value.other["a"][0]):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1
    with pytest.raises(TypeError):
        value.other["b"] = 1
    whole[0] = 1
    assert not value.one.any()
    assert bytes_of(frozen(Pair(np.zeros(10_000), {"a": [np.zeros(1_000)]}))) == pytest.approx(88_000, rel=0.02)
    assert bytes_of(tuple(range(1_000))) > 8_000
    assert bytes_of({"a" * 10_000: 1}) > 10_000


# What models compute


@pytest.fixture
def folder(tmp_path, monkeypatch):
    save_pair(tmp_path)
    use(monkeypatch, tmp_path)
    return tmp_path


def test_each_question_is_answered_once_and_again_for_another_version(folder):
    name, calls = "martin-fierro", []

    @cached
    def own(checkpoint, tokens, *, interventions=()):
        calls.append((tokens, interventions))
        return tokens, interventions, checkpoint.model.config

    asks = [
        lambda: outlines.overview(library.opened(name), TOKENS),
        lambda: tensors.whole(library.opened(name), TOKENS, (), ()),
        lambda: activations.next_token(name, TOKENS),
        lambda: scores(library.opened(name), TOKENS, (), 1, Sampling(), ()).tensors["probability"],
        lambda: activations.answer(name, TOKENS),
        lambda: activations.position_table(name),
        lambda: masked_predictions.predict_text(name, TOKENS, TOKENS[1:]),
        lambda: masked_predictions.padding_effect(name, TOKENS, 2, "left", causal=False, padding=False),
        lambda: own(name, TOKENS),
        lambda: own(name, TOKENS, interventions=("a",)),
        lambda: own(name, (1,)),
    ]
    first = [ask() for ask in asks]
    assert all(ask() is answer for ask, answer in zip(asks, first, strict=True))
    assert calls == [(TOKENS, ()), (TOKENS, ("a",)), ((1,), ())]
    save_tiny(folder, name, seed=9, positions="learned", n_layers=3, n_heads=4)
    second = [ask() for ask in asks]
    assert not any(one is other for one, other in zip(first, second, strict=True))
    assert all(ask() is answer for ask, answer in zip(asks, second, strict=True))
    cache.clear()
    assert asks[0]() is not second[0]


NAMES = ("blocks.0.attn.hook_rot_q[:, 1]", "blocks.1.attn.hook_pattern[0, 2]", "logits", "unembed.weight")


def have(*names):
    model = library.opened("shakespeare")
    there = tensors.infos_of(model.checkpoint.model.config, len(TOKENS), 0)
    return tensors.tensors(model, TOKENS, (), [tensors.part_of(name, there) for name in names])


@pytest.mark.parametrize("whole_below", [0, tensors.WHOLE_BELOW])
def test_arrays_that_are_given_out_are_read_only(folder, monkeypatch, whole_below):
    monkeypatch.setattr(tensors, "WHOLE_BELOW", whole_below)
    recorded = outlines.overview(library.opened("shakespeare"), TOKENS)
    given_out = [activations.next_token("shakespeare", TOKENS), activations.position_table("martin-fierro")]
    given_out += recorded.tensors.values()
    for part in (*given_out, *have(*NAMES).values()):
        assert not part.flags.writeable
    for part in given_out:
        base = part.base  # it isn't kept with what it was a part of: the logits of all positions, values beside keys
        assert base is None or base.untyped_storage().nbytes() == part.nbytes


def test_what_is_remembered_of_a_head_is_counted_once(folder, monkeypatch):
    """A head is a view of all heads' queries, keys and values, which are remembered; nothing else is kept."""
    monkeypatch.setattr(tensors, "WHOLE_BELOW", 0)
    heads = [f"blocks.0.attn.hook_{point}[:, {head}]" for head in range(2) for point in ("rot_q", "rot_k", "v")]
    have(heads[0])
    size = cache._SHARED.size
    have(*heads)
    assert cache._SHARED.size == size


def test_what_an_own_model_computed_stays_with_it_and_goes_with_it(folder):
    made = [save_tiny(folder, "own", seed=seed) for seed in (1, 2)]
    models = [OpenModel("own", f"own-{n}", checkpoint, is_own=True) for n, checkpoint in enumerate(made)]
    first = [outlines.overview(model, TOKENS) for model in models]
    assert [outlines.overview(model, TOKENS) for model in models] == first
    assert len(cache._SHARED) == 0 and len(cache._of_own) == 2
    outlines.overview(library.opened("shakespeare"), TOKENS)
    assert len(cache._SHARED) == 1
    assert all(each.limit == cache.OWN_BYTES for each in cache._of_own.values())
    del made, models, first
    gc.collect()
    assert not cache._of_own


def of_a_collector():
    """A page that keeps one model of its own after another."""
    import streamlit as st

    from pages.ui.session import visitor_models
    from tests.tiny_models import save_tiny

    names, refused = [], 0
    for seed in range(12):
        try:
            names.append(visitor_models.add_model(save_tiny(st.session_state["folder"], "model", seed=seed)))
        except visitor_models.StorageFullError as error:
            assert "Remove one" in str(error)
            refused += 1
    assert list(visitor_models.own_models()) == names and len(names) == st.session_state["room"]
    assert refused == 12 - len(names)
    visitor_models.remove_model(names[0])
    names = [*names[1:], visitor_models.add_model(save_tiny(st.session_state["folder"], "model"))]
    assert list(visitor_models.own_models()) == names


@pytest.mark.parametrize(("bytes_for", "room"), [(100, 8), (3.5, 3), (0.5, 1)])
def test_own_models_are_bounded_in_number_and_bytes(tmp_path, monkeypatch, bytes_for, room):
    """One more is refused, and none goes; the first stays however large it is."""
    size = sum(weight.nbytes for weight in save_tiny(tmp_path, "model").model.parameters())
    monkeypatch.setattr(visitor_models, "MAX_TOTAL_BYTES", bytes_for * size)
    at = AppTest.from_function(of_a_collector, default_timeout=120)
    at.session_state["folder"], at.session_state["room"] = tmp_path, room
    assert not at.run().exception

"""A visitor's text: computed ahead in turns, kept as far as it was seen, with all that the model computed for it."""

import gc
import shutil
import time
from weakref import WeakSet

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from pages.ui.models import activations, library
from pages.ui.models.branches import LOGITS, Memory
from pages.ui.models.shown_text import MOST_WINDOWS, Looked
from pages.ui.models.writer import Writer
from tests.tiny_models import CONTEXT, save_tiny
from tests.writers import (
    FOREVER,
    GREEDY,
    HERE,
    SAMPLING,
    all_ids,
    assert_statistics_equal,
    begin,
    expected,
    ids,
    is_drawn,
    save_models,
    statistics,
    the_model_at_rest,
    written,
)
from transformer import CheckpointError, Sampling, generate, token_statistics
from transformer.inference.windows import by_window
from transformer.model.caches import KeyValues


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(autouse=True)
def models(folder):
    """The tiny models, in every test."""


# Writing


@pytest.mark.parametrize("tokens", [1, CONTEXT - 7, 3 * CONTEXT])
def test_it_writes_what_the_engine_writes(tokens):
    writer = written(begin(), tokens)
    assert ids(writer) == expected(writer.prompt, tokens)
    assert writer.tokens == writer.prompt + tuple(ids(writer))
    assert writer.goal is None and len(writer.branch.ahead) == 1


def test_the_model_at_rest_notices_a_run():
    with the_model_at_rest(), pytest.raises(AssertionError, match="was run"):
        written(begin(), 1)


@given(some.lists(some.tuples(some.integers(1, 9), some.booleans(), some.booleans()), min_size=1, max_size=12),
       some.sampled_from([SAMPLING, GREEDY, Sampling(temperature=1.3, top_k=7, top_p=0.8, seed=2)]))  # fmt: skip
def test_chunks_of_any_size_with_stops_between_write_what_one_go_writes(chunks, sampling):
    writer = begin()
    writer.prepare(sampling)
    for size, stops, other_layer in chunks:
        writer.aim(writer.length + size + 3)
        writer.write(sampling, Looked("self", int(other_layer)), FOREVER, size)
        assert len(writer.branch.ahead) >= 1
        writer.commit(writer.branch.end - size // 4)
        if stops:
            writer.stop()
            writer.prepare(sampling)
    assert all_ids(writer) == expected(writer.prompt, len(all_ids(writer)), sampling)
    for token in writer.branch.tokens:
        assert token.sampling == sampling
        logits = torch.tensor(token.computed[LOGITS])
        probability, rank, entropy = token_statistics(logits, token.id)
        assert (token.probability, token.rank, token.entropy) == (probability, rank, entropy)
        assert is_drawn(token, logits, sampling)


def test_a_second_run_goes_on_from_the_first():
    writer = written(written(begin(), 10), 5)
    assert ids(writer) == expected(writer.prompt, 15)


def test_at_rest_a_text_holds_no_keys_and_values(monkeypatch):
    filled, append = WeakSet(), KeyValues.append

    def append_and_note(self, keys, values):
        filled.add(self)
        return append(self, keys, values)

    def held():
        gc.collect()
        return [found for found in filled if found.keys is not None]

    monkeypatch.setattr(KeyValues, "append", append_and_note)

    before = len(held())
    writer = begin()
    writer.aim(FOREVER)
    writer.write(SAMPLING, HERE, FOREVER, ahead=3)
    assert len(held()) > before
    writer.stop()
    assert len(held()) == before
    written(writer, 6)
    assert len(held()) == before
    assert all_ids(writer) == expected(writer.prompt, len(all_ids(writer)))


def test_other_dials_count_from_the_next_token():
    writer = written(begin(), 6)
    written(writer, 6, GREEDY)
    assert ids(writer)[6:] == expected(writer.prompt + tuple(ids(writer)[:6]), 6, GREEDY)


def test_a_turn_ends_in_time_and_writes_at_least_one_token():
    writer = begin()
    writer.aim(FOREVER)
    started = time.monotonic()
    writer.write(SAMPLING, HERE, seconds=0.2)
    assert time.monotonic() - started < 2
    assert writer.goal and 0 < len(writer.branch.ahead) < FOREVER
    before = writer.branch.end
    writer.write(SAMPLING, HERE, seconds=0)
    assert writer.branch.end == before + 1


def test_so_many_tokens_are_ahead_and_no_more():
    writer = begin()
    writer.aim(FOREVER)
    for _ in range(2):
        writer.write(SAMPLING, HERE, FOREVER, ahead=4.8)
        assert len(writer.branch.ahead) == 5
    writer.commit(writer.length + 2)
    writer.write(SAMPLING, HERE, FOREVER, ahead=4.8)
    assert (len(writer.written), len(writer.branch.ahead)) == (2, 5)


# What was seen


def test_what_is_ahead_is_no_part_of_the_text_until_it_was_seen():
    writer = begin()
    writer.aim(writer.length + 20)
    writer.write(SAMPLING, HERE, FOREVER)
    assert writer.tokens == writer.prompt and len(writer.branch.ahead) == 21
    writer.commit(writer.length + 8)
    with the_model_at_rest():
        writer.stop()
        writer.prepare(SAMPLING)
        assert ids(writer) == all_ids(writer)[:8]
        writer.commit(writer.length + 1)  # a step
    assert len(ids(writer)) == 9


@pytest.mark.parametrize("length", [0, 9, 12, 31, FOREVER])
def test_a_length_that_was_seen_before_or_that_there_is_not_changes_nothing(length):
    writer = written(begin(), 5)
    before = ids(writer)
    writer.commit(length if length != 12 else writer.length)
    assert ids(writer) == before


def test_at_rest_one_token_is_ahead_for_whoever_asks_first_and_all_others():
    one, other = begin(), begin()
    one.prepare(SAMPLING)
    with the_model_at_rest():
        other.prepare(SAMPLING)
        other.prepare(GREEDY)
    assert all_ids(one) == expected(one.prompt, 1) and all_ids(other) == expected(one.prompt, 1, GREEDY)


def test_dials_draw_anew_from_what_was_computed():
    writer = written(begin(), 5)
    writer.aim(writer.length + 9)
    writer.write(SAMPLING, HERE, FOREVER)
    with the_model_at_rest():
        assert writer.redraw(GREEDY) and not writer.redraw(GREEDY)
    assert [token.sampling for token in writer.branch.ahead] == [GREEDY]
    assert all_ids(writer)[5:] == expected(writer.tokens, 1, GREEDY)


def test_writing_ends_with_the_end_token():
    writer = Writer()
    card = library.model("translator").card
    writer.begin("translator", (card.start_token_id,), tuple(library.tokenizer("translator").encode("forty-two")))
    model = library.model("translator").model

    def prefer_the_end(module, inputs, output):
        output = output.clone()
        output[..., card.end_token_id] += 100.0 * (writer.branch.end >= 4)
        return output

    handle = model.unembed.register_forward_hook(prefer_the_end)
    try:
        written(writer, 20, looked=Looked("cross", 0))
    finally:
        handle.remove()
    assert ids(writer)[3:] == [card.end_token_id] and writer.finished and writer.ended and writer.goal is None
    with the_model_at_rest("translator"):
        writer.prepare(SAMPLING)
        writer.aim(FOREVER)
        writer.pick(writer.length, 5)
    assert len(ids(writer)) == 4 and not writer.branch.ahead and writer.goal is None


# What the model computed


@pytest.mark.parametrize("model", ["shakespeare", "martin-fierro"])
@pytest.mark.parametrize("recorded", [0, 1])
def test_rows_and_logits_are_those_of_the_token_before(model, recorded):
    writer = written(begin(model=model), 2 * CONTEXT + 4, looked=Looked("self", recorded))
    first = len(writer.prompt)
    for layer in (0, 1):
        found = writer.rows(Looked("self", layer), 0, FOREVER)
        kept = range(first, writer.branch.end)
        last = [place for _, places in by_window(kept, CONTEXT)[-MOST_WINDOWS:] for place in places]
        assert set(found) == set(kept if layer == recorded else last) and first not in last
        for place, row in found.items():
            logits, rows = activations.next_token(model, writer.tokens[:place] if place <= writer.length else ())
            assert np.allclose(row, rows["self"][layer], atol=1e-5)
            assert np.allclose(writer.logits([place])[0], logits, atol=1e-4)


def test_another_head_of_the_same_layer_needs_no_model():
    writer = written(begin(), 20)
    with the_model_at_rest():
        assert all(row.shape[0] == 2 for row in writer.rows(HERE, 0, FOREVER, only_kept=True).values())
        assert len(writer.rows(HERE, 0, FOREVER)) == 21
    writer.rows(Looked("self", 1), len(writer.prompt), CONTEXT)
    with the_model_at_rest():  # it was computed once
        writer.rows(Looked("self", 1), len(writer.prompt), CONTEXT)


def test_rows_of_a_source_are_as_long_as_it_is():
    writer = Writer()
    task = library.model("translator")
    source = tuple(task.tokenizer.encode("two hundred and five"))
    writer.begin("translator", (task.card.start_token_id,), source)
    written(writer, 4, GREEDY, Looked("cross", 0))
    for looked in (Looked("cross", 0), Looked("decoder", 0)):
        for place, row in writer.rows(looked, 1, 5).items():
            _, rows = activations.next_token("translator", writer.tokens[:place], source)
            assert np.allclose(row, rows[looked.kind][0], atol=1e-5)
            assert row.shape == (2, len(source) if looked.kind == "cross" else place)


def test_memory_is_bounded_and_what_has_gone_is_computed_again(monkeypatch):
    monkeypatch.setattr("pages.ui.models.shown_text.LOGITS_BYTES", 1000)
    monkeypatch.setattr("pages.ui.models.shown_text.ROWS_BYTES", 500)
    writer = written(begin(), 30)
    kept = sum(array.nbytes for token in writer.branch.tokens for key, array in token.computed.items() if key == LOGITS)
    assert 0 < kept <= 1000
    logits = writer.logits(range(len(writer.prompt), writer.branch.end + 1))
    for place, found in enumerate(logits, start=len(writer.prompt)):
        before = writer.prompt + tuple(all_ids(writer)[: place - len(writer.prompt)])
        assert np.allclose(found, activations.next_token("shakespeare", before)[0], atol=1e-4)


@given(some.lists(some.integers(0, 50), max_size=30), some.integers(1, 400))
def test_a_memory_keeps_the_newest_of_what_fits(sizes, limit):
    memory, stores = Memory(limit), []
    for size in sizes:
        stores.append({})
        memory.put(stores[-1], "name", np.zeros(size, np.uint8))
        if stores[-1]:
            memory.put(stores[-1], "name", np.zeros(limit, np.uint8))  # there is one already
            assert stores[-1]["name"].nbytes == size
        kept = [store["name"].nbytes for store in stores if store]
        assert memory.size == sum(kept) <= limit
        assert bool(stores[-1]) == (size <= limit)
        first = next((place for place, store in enumerate(stores) if store), len(stores))
        assert all(stores[first:])


# A text from a link


@pytest.mark.parametrize("tokens", [1, 6, 3 * CONTEXT])
@pytest.mark.parametrize("prompt", ["R", "ROMEO:\n", "KING: " * 6])
def test_a_restored_text_is_as_the_written_one(prompt, tokens):
    one = written(begin(prompt), tokens)
    other = begin(prompt)
    other.restore(tuple(ids(one)), SAMPLING)
    assert_statistics_equal(statistics(other), statistics(one))
    assert [(token.point, token.sampling) for token in other.written] == [
        (token.point, SAMPLING) for token in one.written
    ]
    assert other.goal is None
    assert ids(written(other, 5)) == ids(written(one, 5))


def test_of_a_token_that_the_dials_do_not_lead_to_it_is_not_known_how_it_was_drawn():
    one, other = written(begin(), 12), begin()
    other.restore(tuple(ids(one)), Sampling(temperature=0.9, seed=8))
    known = [token.sampling for token in other.written]
    assert None in known
    assert all(is_drawn(token, torch.tensor(token.computed[LOGITS]), token.sampling)
               for token in other.written if token.sampling)  # fmt: skip
    index = known.index(None)
    other.pick(len(other.prompt) + index, (ids(other)[index] + 1) % 60)  # and so it is instead of what
    assert (other.written[-1].picked, other.written[-1].point) == (True, None)


def test_restoring_goes_over_to_a_text_that_is_there_and_keeps_the_other():
    writer = written(begin(), 6)
    text = tuple(ids(writer))
    writer.restore(text[:3])
    assert tuple(ids(writer)) == text[:3] and len(writer.tree.branches) == 2
    with the_model_at_rest():
        writer.restore(text)
    assert tuple(ids(writer)) == text and len(writer.tree.branches) == 2


def test_restoring_nothing_is_nothing():
    writer = begin()
    writer.restore(())
    assert writer.tokens == writer.prompt


# A model that is replaced


def test_a_replaced_model_does_not_change_a_text_half_way(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    old = save_tiny(tmp_path, "model", seed=1)
    writer = written(begin(model="model"), 5)
    save_tiny(tmp_path, "model", seed=2, n_layers=3, alphabet="ROME:\n")  # another shape, and other tokens
    written(writer, 5)
    writer.stop()
    written(writer, CONTEXT, Sampling(temperature=0.5, seed=3))
    steps = generate(old.model, writer.prompt, max_new_tokens=10, sampling=SAMPLING, names_filter=())
    assert ids(writer)[:10] == [step.token_id for step in steps]
    after = writer.prompt + tuple(ids(writer)[:10])
    steps = generate(old.model, after, max_new_tokens=CONTEXT, sampling=Sampling(temperature=0.5, seed=3))
    assert ids(writer)[10:] == [step.token_id for step in steps]
    picked = 40  # only the old one knows it
    writer.pick(len(writer.prompt), picked)
    assert ids(writer) == [picked]
    assert writer.begin("model", (1, 2))
    assert len(library.model("model").model.blocks) == len(writer.opened.checkpoint.model.blocks) == 3


def test_a_model_that_has_gone_writes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    save_tiny(tmp_path, "model", seed=1)
    writer = written(begin(model="model"), 5)
    shutil.rmtree(tmp_path / "model")
    assert len(ids(written(writer, 5))) == 10 and not writer.finished
    with pytest.raises(CheckpointError, match="no checkpoint folder 'model'"):
        writer.begin("model", (1,))


def test_past_the_context_it_keeps_nothing_of_the_last_pass():
    writer = begin()
    writer.aim(FOREVER)
    writer.write(SAMPLING, HERE, FOREVER, ahead=CONTEXT + 5)
    written(writer, CONTEXT + 5)
    assert all(array.base is None for token in writer.branch.tokens for array in token.computed.values())
    assert ids(written(writer, 5)) == expected(writer.prompt, CONTEXT + 10)

"""The texts after one prompt: branches that are begun, left, found again, and never lost or changed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from pages.ui.models import activations, library
from pages.ui.models.branches import LOGITS, MOST_BRANCHES
from pages.ui.models.shown_text import Looked
from tests.writers import (
    FOREVER,
    GREEDY,
    HERE,
    SAMPLING,
    all_ids,
    begin,
    expected,
    ids,
    is_drawn,
    save_models,
    statistics,
    the_model_at_rest,
    written,
)
from transformer import Sampling, token_statistics


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(autouse=True)
def models(folder):
    """The tiny models, in every test."""


# Branches


@pytest.mark.parametrize("index", [0, 4, 7])
def test_a_picked_token_begins_a_branch_and_needs_no_model(index):
    writer = written(begin(), 8)
    before, first = statistics(writer), writer.branch
    other = (ids(writer)[index] + 1) % 60
    with the_model_at_rest():
        writer.pick(len(writer.prompt) + index, other)
    assert statistics(writer)[:index] == before[:index]
    assert len(writer.written) == index + 1
    picked = writer.written[-1]
    assert picked.id == other and picked.picked
    probability, rank, entropy = token_statistics(torch.tensor(picked.computed[LOGITS]), other)
    assert (picked.probability, picked.rank, picked.entropy) == (probability, rank, entropy)
    written(writer, 5)
    assert ids(writer)[index + 1 :] == expected(writer.tokens[:-5], 5)
    assert (writer.branch.parent, writer.branch.at) == (first, len(writer.prompt) + index)
    with the_model_at_rest():
        writer.undo()
    assert statistics(writer) == before and len(writer.tree.branches) == 2  # what was written stays


def test_what_comes_next_can_be_picked_without_a_branch():
    writer = written(begin(), 3)
    length, other = writer.length, (all_ids(writer)[3] + 1) % 60
    writer.pick(length, other)
    assert ids(writer)[3] == other and len(writer.tree.branches) == 1 and not writer.branch.ahead


@pytest.mark.parametrize("index", [0, 2, 3])
def test_picking_what_is_there_changes_nothing_but_what_was_seen(index):
    writer = written(begin(), 3)
    before = all_ids(writer)
    writer.pick(len(writer.prompt) + index, before[index])
    assert all_ids(writer) == before and len(ids(writer)) == max(3, index + 1) and len(writer.tree.branches) == 1


@pytest.mark.parametrize("place", [0, 6, 12, FOREVER])
def test_nothing_is_picked_where_there_is_no_text(place):
    writer = written(begin(), 3)
    writer.pick(place, 5)
    assert len(ids(writer)) == 3 and len(writer.tree.branches) == 1


def test_undo_takes_a_branch_away_in_which_nothing_was_written():
    writer = written(begin(), 6)
    text = ids(writer)
    writer.pick(writer.length - 2, (text[-2] + 1) % 60)
    writer.undo()
    assert ids(writer) == text and len(writer.tree.branches) == 1
    writer.undo()
    assert ids(writer) == text


def test_a_branch_is_written_on_from_where_it_was_left():
    writer = written(begin("R"), 5)
    writer.pick(writer.length - 2, 5)
    written(writer, 3)
    for branch in (1, 2, 1):
        writer.switch(branch)
        before = writer.tokens
        written(writer, 3)
        assert writer.tokens == before + tuple(expected(before, 3))


def test_clear_begins_an_empty_text_and_undo_brings_the_other_back():
    writer = written(begin(), 8)
    prompt, first = writer.prompt, ids(writer)
    with the_model_at_rest():
        writer.clear()
        writer.clear()
        writer.prepare(SAMPLING)
    assert writer.tokens == writer.prompt == prompt and len(writer.tree.branches) == 2
    written(writer, 8)
    assert ids(writer) == first and writer.branch.at == writer.length  # the same so far
    writer.undo()
    assert ids(writer) == first and len(writer.tree.branches) == 2


def test_clear_ends_a_run():
    writer = begin()
    writer.aim(50)
    writer.clear()
    writer.write(SAMPLING, HERE, FOREVER)
    assert not writer.branch.tokens


def test_there_are_so_many_branches_and_no_more():
    writer = written(begin(), 3)
    text = ids(writer)
    for token in range(2 * MOST_BRANCHES):  # each from the last
        writer.pick(len(writer.prompt) + 1, token % 60)
    assert len(writer.tree.branches) <= MOST_BRANCHES
    assert_a_tree(writer)
    assert ids(writer)[:1] == text[:1]


def assert_a_tree(writer):
    branches = writer.tree.branches
    assert writer.branch in branches and len({branch.id for branch in branches}) == len(branches)
    for branch in branches:
        above = branch
        for _ in branches:
            above = above.parent if above else None
        assert above is None  # no circle
        assert 0 <= branch.seen <= len(branch.tokens)
        if branch.parent:
            assert branch.parent in branches
            here, there = ([token.id for token in each.written] for each in (branch, branch.parent))
            parts = branch.at - branch.begin
            assert (here[:parts] == there[:parts] and here[parts : parts + 1] != there[parts : parts + 1]) or (
                min(len(here), len(there)) == parts
            )


NUMBER = some.integers(0, 40)
ACTS = some.one_of(
    some.tuples(some.just("write"), some.integers(1, 12), some.integers(0, 1)),
    some.tuples(some.just("commit"), NUMBER),
    some.tuples(some.just("pick"), NUMBER, some.integers(0, 59)),
    some.tuples(some.just("switch"), some.integers(0, 6)),
    some.tuples(some.just("dials"), some.sampled_from([SAMPLING, GREEDY, Sampling(temperature=2.0, seed=1)])),
    some.sampled_from([("undo",), ("clear",), ("stop",), ("rest",)]),
    some.tuples(some.just("restore"), some.lists(some.integers(0, 59), max_size=6)),
)


@given(some.lists(ACTS, max_size=25))
def test_whatever_is_done_no_text_that_was_seen_is_lost_or_changed(acts):
    writer, sampling, seen = begin(), SAMPLING, {}
    for name, *details in acts:
        match name:
            case "write":
                writer.aim(writer.length + details[0])
                writer.write(sampling, Looked("self", details[1]), FOREVER, 6)
            case "commit":
                writer.commit(len(writer.prompt) + details[0])
            case "pick":
                writer.pick(len(writer.prompt) + details[0], details[1])
            case "restore":
                writer.restore(tuple(details[0]), sampling)
                assert ids(writer) == details[0]
            case "dials":
                sampling = details[0]
            case "rest":
                writer.prepare(sampling)
                assert writer.branch.ahead and writer.branch.ahead[0].sampling == sampling
            case _:
                getattr(writer, name)(*details)
        assert writer.tokens == writer.prompt + tuple(ids(writer))
        assert_a_tree(writer)
        assert writer.goal is None or writer.goal > writer.length
        branches = {branch.id: [token.id for token in branch.written] for branch in writer.tree.branches}
        for number, text in seen.items():
            kept = branches.get(number)
            assert name == "undo" or kept is not None
            assert kept is None or kept[: len(text)] == text
        seen = branches
    whole = writer.prompt + tuple(all_ids(writer))
    for place, token in enumerate(writer.branch.tokens, start=len(writer.prompt)):
        logits = torch.tensor(writer.logits([place])[0])
        again, _ = activations.next_token("shakespeare", whole[:place])
        assert np.allclose(logits, again, atol=1e-4)
        if token.sampling and not token.picked:
            assert is_drawn(token, logits, token.sampling)


# Other prompts


def test_the_same_prompt_again_keeps_the_text():
    writer = written(begin(), 8)
    assert not writer.begin(writer.model, writer.prompt)
    assert len(writer.written) == 8


@pytest.mark.parametrize(("model", "prompt"), [("shakespeare", "JULIET:"), ("martin-fierro", "ROMEO:\n")])
def test_another_prompt_or_model_has_its_own_texts_and_the_former_s_are_kept(model, prompt):
    writer = written(begin(), 8)
    before, former = (writer.model, writer.prompt), ids(writer)
    writer.pick(writer.length - 1, 5)
    tokens = tuple(library.tokenizer(model).encode(prompt))
    assert writer.begin(model, tokens)
    assert writer.tokens == tokens and len(writer.tree.branches) == 1
    assert ids(written(writer, 5)) == expected(tokens, 5, model=model)
    assert writer.begin(*before)
    assert [token.id for token in writer.tree.branches[0].written] == former
    assert writer.begin(model, tokens) and len(writer.written) == 5


def test_so_many_former_texts_are_kept_and_no_more():
    writer = begin()
    prompts = [(1, 2, number) for number in range(12)]
    for prompt in prompts:
        writer.begin("shakespeare", prompt)
        written(writer, 2)
    kept = 0
    for prompt in prompts:
        writer.begin("shakespeare", prompt)
        kept += len(writer.written) == 2
    assert 0 < kept <= 8

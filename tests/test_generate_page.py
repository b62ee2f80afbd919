"""The page Generate: what is written is what the engine writes, and nothing that its instrument tells runs the page."""

import numpy as np
import pytest
import torch

from pages.ui.models import library
from pages.ui.shell import state
from tests.app_driver import (
    act,
    cache_of,
    checked,
    component,
    dials,
    go,
    have,
    link_of,
    prompt,
    start,
    step,
    text_of,
    turn,
    type_prompt,
    write,
    writing,
)
from tests.tiny_models import CONTEXT, EXAMPLES
from transformer import Sampling, generate

pytestmark = pytest.mark.usefixtures("folder")


def written_by_the_engine(prompt, tokens, **sampling):
    checkpoint = library.model("shakespeare")
    steps = generate(checkpoint.model, checkpoint.tokenizer.encode(prompt), max_new_tokens=tokens,
                     sampling=Sampling(**sampling), names_filter=())  # fmt: skip
    return checkpoint.tokenizer.decode([step.token_id for step in steps])


def test_generate_writes_as_many_tokens_as_the_dial_says_and_what_the_engine_says():
    at = write(start(tokens=30, seed=3, temperature=1.1, top_k=20, top_p=0.9))
    wanted = written_by_the_engine(EXAMPLES[0], 30, seed=3, temperature=1.1, top_k=20, top_p=0.9)
    assert text_of(at) == wanted
    assert writing(at).metadata["goal"] is None
    write(at)
    assert text_of(at).startswith(wanted) and len(text_of(at)) == 60


def test_a_step_writes_the_first_token_of_generate():
    stepwise, at_once = start(seed=9), write(start(seed=9, tokens=4))
    for tokens in range(1, 5):
        step(stepwise)
        assert text_of(stepwise) == text_of(at_once)[:tokens]


def test_what_the_model_computed_for_a_place_is_sent():
    at = write(start(tokens=6, temperature=0.5))
    first = len(EXAMPLES[0])
    at = start(**link_of(at) | {"step": first + 2})
    shown = writing(at)
    assert shown.metadata["step"] == first + 2 and shown.metadata["first"] == first
    text = EXAMPLES[0] + text_of(at)[:2]
    checkpoint = library.model("shakespeare")
    with torch.no_grad():
        logits = checkpoint.model(torch.tensor([checkpoint.tokenizer.encode(text)[-CONTEXT:]]))[0, -1]
    assert np.allclose(shown.tensors["logits"][2], logits, atol=1e-4)
    token = checkpoint.tokenizer.encode(text_of(at))[2]
    assert shown.tensors["ids"][2] == token
    assert shown.tensors["probability"][2] == pytest.approx(float(logits.softmax(-1)[token]), rel=1e-3)
    pattern = cache_of("shakespeare", text)["pattern", 0][0, 0, -1]
    places = shown.tensors["row_place"].tolist()
    start_of = int(shown.tensors["row_length"][: places.index(first + 2)].sum())
    assert np.allclose(shown.tensors["rows"][start_of : start_of + len(pattern)], pattern, atol=1e-4)
    assert shown.tensors["row_start"][places.index(first + 2)] == len(text) - len(pattern)


def test_exploring_and_writing_run_no_page(monkeypatch):
    at = start(tokens=5)
    ended = []
    monkeypatch.setattr(state, "end_run", lambda: ended.append(None))
    goal = have(at) + 4
    act(at, "write", goal=goal)
    while have(at) < goal:
        act(at, "write", goal=goal)
    act(at, "rest", seen=goal)
    turn(at, temperature=0.2, head=1)
    act(at, "pick", place=goal - 2, token=5)
    act(at, "rows", first=0, last=99)
    act(at, "undo")
    act(at, "clear")
    act(at, "branch", to=1)
    act(at, "compare", **{"with": 1})
    act(at, "stop")
    assert not ended
    checked(at.run())
    assert len(ended) == 1 and dials(at)["head"] == 1


def test_the_view_stays_the_same_while_its_text_is_written():
    at = start(tokens=5)
    before = component(at, "headsup_writing").json
    act(at, "write", goal=have(at) + 2)
    checked(at.run())
    assert component(at, "headsup_writing").json == before


def test_clear_takes_the_text_and_keeps_the_prompt_and_undo_brings_it_back():
    at = write(start(tokens=5))
    text = text_of(at)
    act(at, "clear")
    assert text_of(at) == "" and writing(at).metadata["can_undo"]
    assert prompt(checked(at.run())) == EXAMPLES[0] and text_of(at) == ""
    act(at, "undo")
    assert text_of(at) == text and not writing(at).metadata["can_undo"]


def test_a_branch_is_what_the_link_carries():
    at = write(start(tokens=8))
    text, place = text_of(at), len(EXAMPLES[0]) + 3
    token = (int(writing(at).tensors["ids"][3]) + 1) % 60
    act(at, "pick", place=place, token=token)
    wanted = text[:3] + library.tokenizer("shakespeare").decode([token])
    assert text_of(at) == wanted
    assert [branch["at"] for branch in writing(at).metadata["branches"]] == [None, place]
    assert text_of(start(**link_of(at))) == wanted
    act(at, "branch", to=1)
    assert text_of(at) == text


def test_stop_keeps_what_was_seen_and_generate_goes_on():
    at = start(tokens=500, pace="slow")
    act(at, "write", goal=have(at) + 499)
    length = writing(at).metadata["length"] + 2
    act(at, "stop", seen=length)
    about = writing(at).metadata
    assert (about["length"], about["goal"]) == (length, None) and have(at) > length
    stopped = text_of(checked(at.run()))
    assert len(stopped) == 2
    turn(at, pace="unbounded", tokens=3)
    assert text_of(write(at)).startswith(stopped) and len(text_of(at)) == 5


@pytest.mark.parametrize("page", ["Attention", "Positions"])
def test_another_page_ends_a_run_and_keeps_what_was_seen(page):
    at = start(tokens=500, pace="slow")
    act(at, "write", goal=have(at) + 499)
    act(at, "rest", seen=writing(at).metadata["length"] + 2)
    assert not text_of(at)  # the address bar is rewritten only so often while a text is written
    go(at, page)
    text = text_of(at)
    assert len(text) == 2
    go(at, "Generate")
    about = writing(at).metadata
    assert text_of(at) == text and about["goal"] is None and about["whole"]


def test_another_prompt_while_writing_ends_the_run_and_the_former_comes_back_with_its_text():
    at = start(tokens=500, pace="slow")
    act(at, "write", goal=have(at) + 499)
    act(at, "rest", seen=writing(at).metadata["length"] + 2)
    text, before = text_of(checked(at.run())), writing(at).metadata["id"]
    assert len(text) == 2
    type_prompt(at, "KING: ")
    about = writing(at).metadata
    assert text_of(at) == "" and about["goal"] is None and about["length"] == len("KING: ")
    assert about["id"] != before
    act(at, "rest", id=before, seen=have(at))  # of the other prompt, too late
    assert writing(at).metadata["length"] == len("KING: ")
    type_prompt(checked(at.run()), EXAMPLES[0])
    assert text_of(at) == text and writing(at).metadata["id"] == before


def test_what_is_told_again_is_done_once_and_answered_again():
    at = write(start(tokens=4))
    heard, place = writing(at).metadata["heard"], len(writing(at).metadata["prompt"]["text"])
    token = (int(writing(at).tensors["ids"][0]) + 1) % 60
    for _ in range(2):
        act(at, "pick", place=place, token=token, branch=1, have=place + 5, count=heard + 1)
        about = writing(at).metadata
        assert len(about["branches"]) == 2 and about["heard"] == heard + 1 and about["whole"]
    act(at, "rest", seen=place + 2)
    for _ in range(2):
        act(at, "clear", branch=2, have=place + 3, count=heard + 3)
        assert len(writing(at).metadata["branches"]) == 3 and writing(at).metadata["branch"] == 3
    act(at, "rest", seen=place + 1)
    for _ in range(2):
        act(at, "undo", branch=3, have=place + 2, count=heard + 5)
        assert writing(at).metadata["branch"] == 2
    for _ in range(2):
        act(at, "compare", **{"with": 1}, count=heard + 6)
        assert writing(at).metadata["compared"]["with"] == 1
    act(at, "undo", count=heard + 1)  # long ago
    assert writing(at).metadata["branch"] == 2


@pytest.mark.parametrize("goal", [10**9, 2**60, -1, "9", None])
def test_no_goal_is_further_than_the_dial_goes(goal):
    at = start(pace="slow")
    length = writing(at).metadata["length"]
    act(at, "write", goal=goal)
    assert writing(at).metadata["goal"] == (length + 500 if goal == 10**9 else None)


def test_dials_that_a_link_turns_replace_those_in_the_browser_and_what_it_told_does_not():
    at = start(tokens=5)
    serial = writing(at).metadata["serial"]
    turn(at, temperature=1.5)
    assert link_of(at)["temperature"] == "1.5"
    checked(at.run())
    assert writing(at).metadata["serial"] == serial and dials(at)["temperature"] == 1.5
    at.session_state["visitor"].seed = 9  # as going back in the browser's history does
    checked(at.run())
    assert writing(at).metadata["serial"] > serial and dials(at)["seed"] == 9


def test_two_visitors_do_not_see_each_other():
    one, other = start(tokens=8, seed=1), start(tokens=8, seed=2)
    write(one)
    assert text_of(checked(other.run())) == ""
    write(other)
    assert text_of(one) != text_of(other)
    assert text_of(checked(one.run())) == written_by_the_engine(EXAMPLES[0], 8, seed=1, temperature=0.8)

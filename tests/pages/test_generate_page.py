"""Tests the page Generate: its text is the engine's, other pages show the same, and its tokens' scores."""

import math

import numpy as np
import pytest

from pages.ui.models import library
from tests import app_driver as app
from tests.app_driver import checked, dials, given, ids_of, link_of, start, step, text_of, turn, write
from tests.tiny_models import CONTEXT, EXAMPLES
from transformer import Sampling, Without
from transformer.api import generated_texts

pytestmark = pytest.mark.usefixtures("folder")


def written_by_the_engine(prompt, tokens, **sampling):
    return app.decoded("shakespeare", app.generated("shakespeare", app.ids(prompt), tokens, **sampling))


def test_generate_and_step_write_what_the_engine_says_and_another_visitor_sees_nothing_of_it():
    how = {"seed": 3, "temperature": 1.1, "top_k": 20, "top_p": 0.9}
    at, other = write(start(tokens=30, **how)), start(tokens=30, **how)
    wanted = written_by_the_engine(EXAMPLES[0], 30, **how)
    assert text_of(at) == wanted and text_of(checked(other.run())) == ""
    for tokens in range(1, 5):
        assert text_of(step(other)) == wanted[:tokens]
    assert text_of(write(at)).startswith(wanted) and len(text_of(at)) == 60


def test_another_page_keeps_what_was_written():
    at = write(start(tokens=5))
    text, ids = text_of(at), ids_of(at)
    app.go(at, "Inside")
    assert app.outline(at).metadata["ids"]["text"][-5:] == ids
    app.go(at, "Attention")
    assert "".join(app.overview(at).metadata["labels"]["text"]) == EXAMPLES[0].replace(" ", "␣").replace("\n", "↵")
    app.look_at(at, scope="all")
    assert "".join(app.overview(at).metadata["labels"]["text"]).endswith(text.replace(" ", "␣").replace("\n", "↵"))
    app.go(at, "Generate")
    assert text_of(at) == text and ids_of(at) == ids
    app.show_text(at, [])
    assert text_of(at) == "" and app.prompt(checked(at.run())) == EXAMPLES[0] and "written" not in link_of(at)


def test_what_is_chosen_before_a_run_stays_and_a_link_brings_it_back():
    at = start(tokens=5)
    turn(write(at), layer=1, head=0, temperature=1.5, pace="slow")
    link = link_of(checked(checked(at.run()).run()))
    assert link.items() >= {"layer": "1", "temperature": "1.5", "pace": "slow", "tokens": "5"}.items()
    again = start(**link)
    assert given(again)["written"] == link["written"] and dials(again)["temperature"] == 1.5
    turn(at, temperature=0.8)  # as it is at first
    assert "temperature" not in link_of(at)


def test_another_prompt_begins_without_what_was_written_after_the_former():
    at = write(start(tokens=5))
    before = given(at)["id"]
    app.type_prompt(at, "KING: ")
    assert text_of(at) == "" and given(at)["written"] == "" and given(at)["id"] != before


@pytest.mark.parametrize(
    ("size", "changes", "passes"),
    [(41, (), 1 + math.ceil((41 - CONTEXT) / (CONTEXT / 4))), (30, (Without("mask"),), 30)],
    ids=["one for each window", "one for each place, as the change looks ahead"],
)
def test_the_scores_of_a_text_s_tokens_take_few_passes(size, changes, passes):
    tokens, model, counted = tuple(i % 60 for i in range(size)), library.model("shakespeare").model, []
    handle = model.embed.register_forward_hook(lambda *_: counted.append(1))
    found = generated_texts.scores(library.opened("shakespeare"), tokens, (), 1, Sampling(), changes).tensors["logits"]
    handle.remove()
    assert len(counted) == passes
    first = app.logits("shakespeare", tokens[:CONTEXT], *changes)
    np.testing.assert_allclose(
        found[CONTEXT - 1] if changes else found[:CONTEXT], first[-1] if changes else first, atol=1e-5
    )

"""What lessons measure of whole models, of texts and of a visitor's training, beside what it should be."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pages.ui.lessons import inner_measures, measures, model_measures, own_measures, text_measures
from pages.ui.lessons.scenes import MeasureError, NotYet, Scene
from pages.ui.models import library, own_training
from transformer import sinusoidal_encoding

PROMPT = "kR7wZq3xB kR7wZ"
INDUCTION = Scene("induction", PROMPT)


def test_the_shares_of_a_model_s_parts_are_all_of_it():
    for name in ("shakespeare", "number-words-en-es", "ladder-8-blocks"):
        shares = [model_measures.parameter_share(Scene(name), part) for part in model_measures.PARTS]
        assert sum(shares) == pytest.approx(1, abs=0.002)  # a bias of the unembedding is in none of them
    assert model_measures.parameter_share(INDUCTION, "feed-forward") == 0


def test_the_entropy_of_a_table_of_pairs_is_that_of_what_it_writes():
    """Against the mean entropy along a long text that the table itself draws."""
    model = library.model("ladder-1-bigram").model
    with torch.no_grad():
        table = model(torch.arange(65)[:, None])[:, 0].double().softmax(-1).numpy()
    random, token, found = np.random.default_rng(0), 0, []
    for _ in range(20_000):
        found.append(-(table[token] * np.log(table[token])).sum())
        token = random.choice(65, p=table[token] / table[token].sum())
    assert model_measures.entropy_rate(Scene("ladder-1-bigram")) == pytest.approx(np.mean(found), abs=0.03)
    with pytest.raises(MeasureError, match="more than the last token"):
        model_measures.entropy_rate(Scene("ladder-2-positions"))


def test_guessing_blindly_is_a_hesitation_between_all_tokens():
    assert math.exp(model_measures.blind_guess(INDUCTION)) == pytest.approx(72)
    loss = library.model("induction").card.validation_loss
    assert math.log(model_measures.perplexity(INDUCTION)) == pytest.approx(loss)


@pytest.mark.parametrize("width", [1, 4, 64])
def test_products_of_random_vectors_are_spread_by_the_root_of_their_width(width):
    assert model_measures.random_products(INDUCTION, width) == pytest.approx(math.sqrt(width), rel=0.02)


def test_positions_are_as_alike_as_the_paper_s_table_says():
    table = sinusoidal_encoding(64, 192).double()
    expected = float(torch.cosine_similarity(table[5], table[8], dim=0))
    assert model_measures.position_similarity(Scene("martin-fierro"), 5, 8) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(MeasureError, match="adds no positions"):
        model_measures.position_similarity(INDUCTION, 5, 8)


def test_a_softmax_forgets_what_is_added_and_sharpens_with_what_is_multiplied():
    plain, shifted, sharp = (
        text_measures.softmax_top(INDUCTION, 0, 1, **each) for each in ({}, {"added": 3.0}, {"times": 2.0})
    )
    assert shifted == pytest.approx(plain) and sharp > plain


def test_a_pass_sees_the_answer_where_the_loss_does_not():
    masked = Scene("shakespeare", "To be, or not")
    open_ = Scene("shakespeare", "To be, or not", changes="without~mask~")
    assert text_measures.pass_loss(masked) == pytest.approx(measures.loss(masked), abs=1e-5)
    assert text_measures.pass_loss(open_) != pytest.approx(measures.loss(open_), abs=0.01)


def test_what_comes_later_changes_nothing_and_what_comes_first_changes_all_above():
    scene = Scene("shakespeare", "To be")
    assert text_measures.vector_change(scene, "So be", "hook_embed") == 0
    assert text_measures.vector_change(scene, "So be", "blocks.0.hook_resid_post") > 0
    with pytest.raises(MeasureError, match="as many tokens"):
        text_measures.vector_change(scene, "So be it", "hook_embed")


def test_what_the_first_token_gets_is_the_mean_of_its_column():
    found = text_measures._first_weights(INDUCTION)
    pattern = inner_measures._pattern(INDUCTION, 1, 2, "")
    assert found.shape == (2, 4) and found[1, 2] == pytest.approx(pattern[1:, 0].mean())
    assert text_measures.mean_first_weight(INDUCTION) == pytest.approx(found.mean())
    assert text_measures.sink_share(INDUCTION, 0.0) == 1 and text_measures.sink_share(INDUCTION, 1.0) == 0


def test_the_heaviest_cell_is_where_the_picture_is_darkest():
    assert inner_measures.heaviest_cell(INDUCTION, 1, 1) == [0, 0]  # the first token sees itself alone
    assert inner_measures.least_weight(INDUCTION, 0, 0) == pytest.approx(1)
    assert inner_measures.least_weight(INDUCTION, -1, 5) == pytest.approx(
        min(inner_measures._pattern(INDUCTION, layer, head, "")[-1, 5] for layer in range(2) for head in range(4))
    )
    translator = Scene("number-words-en-es", "two hundred and five", "doscientos")
    query, key = inner_measures.heaviest_cell(translator, 0, 1, "cross")
    pattern = inner_measures._pattern(translator, 0, 1, "cross")
    assert pattern[query, key] == pattern.max() and pattern.shape == (2, 4)
    with pytest.raises(MeasureError, match="no attention"):
        inner_measures.least_weight(Scene("ladder-1-bigram", "To be"), 0, 0)


def test_the_head_on_which_pages_open_is_that_of_the_card():
    stories = Scene("stories", library.model("stories").card.examples[0])
    told = library.model("stories").card.opening
    assert inner_measures.opening_key(stories) == inner_measures.heaviest_key(stories, told["layer"], told["head"])
    assert inner_measures.opening_weight(stories, 4) == pytest.approx(
        inner_measures._pattern(stories, told["layer"], told["head"], "")[4].max()
    )
    with pytest.raises(MeasureError, match="no attention"):
        inner_measures.opening_key(Scene("ladder-1-bigram", "To be"))


def test_the_layer_at_which_it_is_settled_is_the_last_change():
    said = text_measures.lens_likeliest(INDUCTION)
    settled = text_measures.settled_layer(INDUCTION)
    assert len(set(said[settled:])) == 1 and (settled == 0 or said[settled - 1] != said[-1])


CLIFF = [(step, 4.0 if step < 50 else 1.0 if step > 60 else 4.0 - 0.3 * (step - 50)) for step in range(0, 101, 2)]


class TestOwnTraining:
    def test_a_cliff_has_most_of_its_fall_in_one_place_and_a_slope_has_not(self):
        part, at = own_measures.steepest(CLIFF, 0.1)
        assert part == pytest.approx(1, abs=0.02) and at == pytest.approx(0.55, abs=0.01)
        part, _ = own_measures.steepest([(step, 4.0 - step / 100) for step in range(0, 101, 2)], 0.1)
        assert part == pytest.approx(0.1, abs=0.001)
        with pytest.raises(MeasureError, match="didn't fall"):
            own_measures.steepest([(0, 1.0), (10, 1.0), (20, 2.0)], 0.1)

    def test_before_there_is_a_training_and_while_it_runs_it_says_what_to_do(self, monkeypatch):
        job = SimpleNamespace(state="running", result=None, validation_losses=CLIFF)
        slot = SimpleNamespace(job=None)
        monkeypatch.setattr(own_training, "slot", lambda: slot)
        with pytest.raises(NotYet, match="press Train"):
            own_measures.own_last_loss(INDUCTION)
        slot.job = job
        with pytest.raises(NotYet, match="under way"):
            own_measures.own_last_loss(INDUCTION)
        job.state = "finished"
        with pytest.raises(NotYet, match="something else"):
            own_measures.own_last_loss(INDUCTION)
        job.result = library.model("induction")
        assert own_measures.own_last_loss(INDUCTION) == 1.0
        assert own_measures.own_steepest_fall(INDUCTION) > 0.9

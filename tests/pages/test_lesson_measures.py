"""Tests the measures of lessons against independent computations."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pages.ui.lessons import (
    activation_measures,
    context_measures,
    measures,
    model_measures,
    text_measures,
    token_measures,
    training_measures,
    visitor_training_measures,
)
from pages.ui.lessons.measure_setup import MeasureError, NotMeasurableYet, Setup
from pages.ui.models import library, visitor_training
from transformer import sinusoidal_encoding

PROMPT = "kR7wZq3xB kR7wZ"
INDUCTION = Setup("induction", PROMPT)


def test_the_shares_of_a_model_s_parts_are_all_of_it():
    for name in ("shakespeare", "number-words-en-es", "ladder-8-blocks"):
        shares = [model_measures.parameter_share(Setup(name), part) for part in model_measures.PARTS]
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
    assert model_measures.entropy_rate(Setup("ladder-1-bigram")) == pytest.approx(np.mean(found), abs=0.03)
    with pytest.raises(MeasureError, match="more than the last token"):
        model_measures.entropy_rate(Setup("ladder-2-positions"))


def test_guessing_blindly_is_a_hesitation_between_all_tokens(monkeypatch):
    assert math.exp(model_measures.blind_guess(INDUCTION)) == pytest.approx(72)
    checkpoint = library.model("induction")
    assert math.log(model_measures.perplexity(INDUCTION)) == pytest.approx(checkpoint.card.validation_loss)
    unknown = replace(checkpoint, card=replace(checkpoint.card, validation_loss=None))
    monkeypatch.setattr(library, "model", lambda name: unknown)
    with pytest.raises(MeasureError, match="no loss is known"):
        model_measures.perplexity(INDUCTION)


@pytest.mark.parametrize("width", [1, 4, 64])
def test_products_of_random_vectors_are_spread_by_the_root_of_their_width(width):
    assert model_measures.random_products(INDUCTION, width) == pytest.approx(math.sqrt(width), rel=0.02)


def test_positions_are_as_alike_as_the_paper_s_table_says():
    table = sinusoidal_encoding(64, 192).double()
    expected = float(torch.cosine_similarity(table[5], table[8], dim=0))
    assert model_measures.position_similarity(Setup("martin-fierro"), 5, 8) == pytest.approx(expected, abs=1e-5)
    with pytest.raises(MeasureError, match="adds no positions"):
        model_measures.position_similarity(INDUCTION, 5, 8)


def test_a_softmax_forgets_what_is_added_and_sharpens_with_what_is_multiplied():
    plain, shifted, sharp = (
        text_measures.softmax_top(INDUCTION, 0, 1, **each) for each in ({}, {"added": 3.0}, {"times": 2.0})
    )
    assert shifted == pytest.approx(plain) and sharp > plain


def test_a_pass_sees_the_answer_where_the_loss_does_not():
    masked = Setup("shakespeare", "To be, or not")
    open_ = Setup("shakespeare", "To be, or not", changes="without~mask~")
    assert text_measures.pass_loss(masked) == pytest.approx(measures.loss(masked), abs=1e-5)
    assert text_measures.pass_loss(open_) != pytest.approx(measures.loss(open_), abs=0.01)


def test_what_comes_later_changes_nothing_and_what_comes_first_changes_all_above():
    setup = Setup("shakespeare", "To be")
    assert text_measures.vector_change(setup, "So be", "hook_embed") == 0
    assert text_measures.vector_change(setup, "So be", "blocks.0.hook_resid_post") > 0
    with pytest.raises(MeasureError, match="as many tokens"):
        text_measures.vector_change(setup, "So be it", "hook_embed")


def test_what_the_first_token_gets_is_the_mean_of_its_column():
    found = text_measures._first_weights(INDUCTION)
    pattern = activation_measures._pattern(INDUCTION, 1, 2, "")
    assert found.shape == (2, 4) and found[1, 2] == pytest.approx(pattern[1:, 0].mean(), rel=1e-5)
    assert text_measures.mean_first_weight(INDUCTION) == pytest.approx(found.mean())
    assert text_measures.sink_share(INDUCTION, 0.0) == 1 and text_measures.sink_share(INDUCTION, 1.0) == 0


def test_the_heaviest_cell_is_where_the_picture_is_darkest():
    assert activation_measures.heaviest_cell(INDUCTION, 1, 1) == [0, 0]  # the first token sees itself alone
    assert activation_measures.least_weight(INDUCTION, 0, 0) == pytest.approx(1)
    assert activation_measures.least_weight(INDUCTION, -1, 5) == pytest.approx(
        min(activation_measures._pattern(INDUCTION, layer, head, "")[-1, 5] for layer in range(2) for head in range(4))
    )
    translator = Setup("number-words-en-es", "two hundred and five", "doscientos")
    query, key = activation_measures.heaviest_cell(translator, 0, 1, "cross")
    pattern = activation_measures._pattern(translator, 0, 1, "cross")
    assert pattern[query, key] == pattern.max() and pattern.shape == (2, 4)
    with pytest.raises(MeasureError, match="no attention"):
        activation_measures.least_weight(Setup("ladder-1-bigram", "To be"), 0, 0)


def test_the_head_on_which_pages_open_is_that_of_the_card():
    stories = Setup("stories", library.model("stories").card.examples[0])
    told = library.model("stories").card.opening
    assert activation_measures.opening_key(stories) == activation_measures.heaviest_key(
        stories, told["layer"], told["head"]
    )
    assert activation_measures.opening_weight(stories, 4) == pytest.approx(
        activation_measures._pattern(stories, told["layer"], told["head"], "")[4].max()
    )
    with pytest.raises(MeasureError, match="no attention"):
        activation_measures.opening_key(Setup("ladder-1-bigram", "To be"))


def test_the_layer_at_which_it_is_settled_is_the_last_change():
    said = text_measures.lens_likeliest(INDUCTION)
    settled = text_measures.settled_layer(INDUCTION)
    assert len(set(said[settled:])) == 1 and (settled == 0 or said[settled - 1] != said[-1])


def test_the_parts_of_a_logit_are_all_of_it():
    token = INDUCTION.token("q")
    parts = activation_measures._attributed(INDUCTION.name, INDUCTION.window, (), token, ())
    logits = library.model("induction").model(torch.tensor([INDUCTION.tokens]))[0, -1]
    assert sum(parts.values()) == pytest.approx(float(logits[token]), abs=1e-4)
    assert activation_measures.head_logit(INDUCTION, "q", 1, 0) == parts["blocks.1.attn.hook_result[0]"]


def test_what_all_heads_add_is_what_attention_adds_less_its_bias():
    bias = library.model("induction").model.blocks[1].attn.out.bias.detach().numpy()
    attention = activation_measures._tensor(INDUCTION, "blocks.1.hook_attn_out")[-1]
    found = activation_measures.heads_length(INDUCTION, 1, [0, 1, 2, 3])
    assert found == pytest.approx(np.linalg.norm(attention - bias), rel=1e-4)


def test_the_first_merge_is_the_most_frequent_pair_inside_a_word():
    text = "the cat sat on the mat the cat ate that"
    pairs = Counter(one + other for word in text.split() for one, other in itertools.pairwise(word))
    (first, often), (_, less) = pairs.most_common(2)
    assert often > less and token_measures.merges(INDUCTION, text, 3)[0] == first
    assert token_measures.cut(Setup("stories", "Where is Tom?")) == ["Where", "is", "Tom", "?"]
    assert token_measures.unknown_count(Setup("stories", "Where is Kim?")) == 1


def test_embeddings_are_compared_by_their_cosine():
    setup = Setup("stories")
    table = library.model("stories").model.embed.weight.detach()
    alike = torch.cosine_similarity(table, table[setup.token("took")], dim=1)
    order = [setup.label(int(token)) for token in alike.argsort(descending=True)]
    assert token_measures.nearest_tokens(setup, "took", 3) == order[1:4]
    assert token_measures.embedding_similarity(setup, "took", order[1]) == pytest.approx(alike.sort().values[-2])
    assert token_measures.nearest_to_sum(setup, "Mary", "Mary", "park", 1) == ["park"]


def test_the_slope_in_a_logit_is_the_probability_less_what_came():
    setup = Setup("ladder-1-bigram", "a th")
    for token, came in (("e", 1), ("a", 0)):
        expected = measures.probability(setup, token) - came
        assert training_measures.logit_slope(setup, "e", token) == pytest.approx(expected, abs=1e-6)


def test_steps_lower_the_loss_of_a_copy_alone():
    setup = Setup("ladder-8-blocks", "To be, o")
    before = measures.loss(setup)
    assert training_measures.stepped_loss(setup, 0.1, 0) == pytest.approx(before, abs=1e-5)
    assert training_measures.stepped_loss(setup, 0.1, 3) < training_measures.stepped_loss(setup, 0.1) < before
    assert training_measures.stepped_other_loss(setup, setup.prompt, 0.1) == training_measures.stepped_loss(setup, 0.1)
    assert measures.loss(setup) == before


def test_a_cache_holds_a_key_and_a_value_for_each_token_and_changes_nothing():
    shape = library.config("induction")
    assert context_measures.cached_count(INDUCTION) == 2 * len(PROMPT) * shape.n_layers * shape.d_model
    assert context_measures.cache_difference(INDUCTION) < 1e-4
    assert context_measures.score_count(INDUCTION) == shape.n_layers * shape.n_heads * len(PROMPT) ** 2


def test_who_sees_all_that_came_before_has_the_loss_of_the_text():
    last = len(PROMPT) - 1
    assert context_measures.short_sighted_loss(INDUCTION, last, 1) == pytest.approx(
        measures.loss(INDUCTION, last), rel=1e-3
    )
    assert context_measures.short_sighted_loss(INDUCTION, 1, 3) > measures.loss(INDUCTION, last - 2)


def test_no_more_tokens_are_predicted_than_may_be(monkeypatch):
    monkeypatch.setattr(context_measures, "MAX_PREDICTED", 3)
    assert context_measures.short_sighted_loss(INDUCTION, 1, 3) > 0
    with pytest.raises(MeasureError, match="last is from 1 to 3"):
        context_measures.short_sighted_loss(INDUCTION, 1, 4)


CLIFF = [(step, 4.0 if step < 50 else 1.0 if step > 60 else 4.0 - 0.3 * (step - 50)) for step in range(0, 101, 2)]


class TestOwnTraining:
    def test_a_cliff_has_most_of_its_fall_in_one_place_and_a_slope_has_not(self):
        part, at = visitor_training_measures.steepest(CLIFF, 0.1)
        assert part == pytest.approx(1, abs=0.02) and at == pytest.approx(0.55, abs=0.01)
        part, _ = visitor_training_measures.steepest([(step, 4.0 - step / 100) for step in range(0, 101, 2)], 0.1)
        assert part == pytest.approx(0.1, abs=0.001)
        with pytest.raises(MeasureError, match="didn't fall"):
            visitor_training_measures.steepest([(0, 1.0), (10, 1.0), (20, 2.0)], 0.1)

    def test_before_there_is_a_training_and_while_it_runs_it_says_what_to_do(self, monkeypatch):
        job = SimpleNamespace(state="running", result=None, validation_losses=CLIFF)
        slot = SimpleNamespace(job=None)
        monkeypatch.setattr(visitor_training, "training_record", lambda: slot)
        with pytest.raises(NotMeasurableYet, match="press Train"):
            visitor_training_measures.own_last_loss(INDUCTION)
        slot.job = job
        with pytest.raises(NotMeasurableYet, match="under way"):
            visitor_training_measures.own_last_loss(INDUCTION)
        job.state = "finished"
        with pytest.raises(NotMeasurableYet, match="something else"):
            visitor_training_measures.own_last_loss(INDUCTION)
        job.result = library.model("induction")
        assert visitor_training_measures.own_last_loss(INDUCTION) == 1.0
        assert visitor_training_measures.own_steepest_fall(INDUCTION) > 0.9

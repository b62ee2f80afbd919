"""Tests the measures of lessons against independent computations."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pages.ui.lessons import context_measures, model_measures, visitor_training_measures
from pages.ui.lessons.lesson import MeasureCall
from pages.ui.lessons.measure_setup import MeasureError, NotMeasurableYet, Setup
from pages.ui.models import library
from pages.ui.session import visitor_training
from tests.app_driver import cache_of, logits
from transformer import direct_logit_attribution, sinusoidal_encoding, trace_pass

PROMPT = "kR7wZq3xB kR7wZ"
INDUCTION = Setup("induction", PROMPT)
BIGRAM, STORIES, SPEECH = Setup("ladder-1-bigram", "a th"), Setup("stories"), Setup("shakespeare", "To be, or not")
SPANISH, TRANSLATOR = Setup("martin-fierro"), Setup("number-words-en-es", "two hundred and five", "doscientos")


def take(what, setup=INDUCTION, **arguments):
    return replace(MeasureCall.read({"what": what, **arguments}, {}), setup=setup).result()


def test_what_a_pass_tells_is_what_the_pass_has(monkeypatch):
    out, cache = logits("induction", INDUCTION.tokens).double(), cache_of("induction", PROMPT)
    probs, labels, q = out.softmax(-1), library.tokenizer("induction").labels(INDUCTION.tokens), INDUCTION.token("q")
    of_text = -probs[:-1].log().gather(1, torch.tensor(INDUCTION.tokens[1:])[:, None])[:, 0]
    patterns = torch.stack([cache[f"blocks.{layer}.attn.hook_pattern"][0] for layer in range(2)])  # layer, head, q, k
    own, shape, model = patterns[1, 1], library.config("induction"), library.model("induction").model
    likeliest = [library.tokenizer("induction").label(int(token)) for token in probs.argmax(-1)]
    results = cache["blocks.1.hook_attn_out"][0, -1] - model.blocks[1].attn.out.bias
    scores = cache["blocks.1.attn.hook_attn_scores"][0, 1, -1].double()
    attributed = direct_logit_attribution(trace_pass(model, INDUCTION.tokens), [q] * len(labels))
    added = dict(zip(attributed.names, attributed.values[:, -1], strict=True))
    expected = [
        ("probability", {"token": "q"}, probs[-1, q]),
        ("probability", {"token": "q", "position": 3}, probs[3, q]),
        ("likeliest", {}, likeliest[-1]),
        ("likeliest", {"position": 3}, likeliest[3]),
        ("likeliest_probability", {}, probs[-1].max()),
        ("rank", {"token": "q"}, 1),
        ("rank", {"token": "q", "position": 2}, int((probs[2] > probs[2, q]).sum()) + 1),
        ("loss", {}, of_text.mean()),
        ("loss", {"first": 10}, of_text[9:].mean()),
        ("entropies", {"positions": [0, -1]}, [float(torch.special.entr(probs[at]).sum()) for at in (0, -1)]),
        ("drawn_probability", {"token": "q", "temperature": 2.0}, (out[-1] / 2).softmax(-1)[q]),
        ("token_at", {"position": 5}, "q"),
        ("cut", {}, labels),
        ("number_of_tokens", {}, len(labels)),
        ("weight", {"layer": 1, "head": 1, "query": -1, "key": 0}, own[-1, 0]),
        ("weight", {"layer": 1, "head": 1, "query": -1, "key": -1}, own[-1, -1]),
        ("heaviest_key", {"layer": 1, "head": 1, "query": 13}, int(own[13].argmax())),
        ("heaviest_weight", {"layer": 1, "head": 1}, own[-1].max()),
        ("heaviest_cell", {"layer": 1, "head": 1}, [0, 0]),  # the first token sees itself alone
        ("least_weight", {"query": 0, "key": 0}, 1),
        ("least_weight", {"query": -1, "key": 5}, patterns[:, :, -1, 5].min()),
        ("mean_heaviest_weight", {}, patterns[:, :, 1:].max(-1).values.mean()),
        ("mean_first_weight", {}, patterns[:, :, 1:, 0].mean()),
        ("sink_share", {"above": 0.1}, (patterns[:, :, 1:, 0].mean(-1) > 0.1).float().mean()),
        ("softmax_top", {"layer": 1, "head": 1}, own[-1].max()),
        ("softmax_top", {"layer": 1, "head": 1, "added": 3.0}, own[-1].max()),
        ("softmax_top", {"layer": 1, "head": 1, "times": 0.5}, (scores / 2).softmax(-1).max()),
        ("cell", {"tensor": "blocks.0.hook_resid_post", "at": [2, 3]}, cache["blocks.0.hook_resid_post"][0, 2, 3]),
        ("vector_length", {"tensor": "hook_embed", "position": 4}, cache["hook_embed"][0, 4].norm()),
        ("heads_length", {"layer": 1, "heads": [0, 1, 2, 3]}, results.norm()),
        ("number_of_heads", {}, shape.n_layers * shape.n_heads),
        ("hidden_share", {}, np.triu(np.ones((15, 15)), 1).mean()),
        ("blind_guess", {}, math.log(shape.vocab_size)),
        ("perplexity", {}, math.exp(library.model("induction").card.validation_loss)),
        ("score_count", {}, patterns.numel()),
        ("cached_count", {}, 2 * len(labels) * shape.n_layers * shape.d_model),
        ("cache_difference", {}, 0),
        ("short_sighted_loss", {"context": len(labels) - 1, "last": 1}, of_text[-1]),
        ("head_logit", {"token": "q", "layer": 1, "head": 0}, added["blocks.1.attn.hook_result[0]"]),
        ("pass_loss", {}, of_text.mean()),
        ("logit_lens_loss", {"layers": -1}, of_text.mean()),
    ]
    for what, arguments, right in expected:
        right = right.item() if isinstance(right, torch.Tensor) else right
        right = right if isinstance(right, str) or what == "cut" else pytest.approx(right, rel=1e-3, abs=1e-4)
        assert take(what, **arguments) == right, what
    contexts = torch.tensor([INDUCTION.tokens[at - 1 : at + 1] for at in range(12, 15)])
    short = F.cross_entropy(model(contexts[:, :1])[:, -1], contexts[:, 1])
    monkeypatch.setattr(context_measures, "MAX_PREDICTED", 3)
    assert take("short_sighted_loss", context=1, last=3) == pytest.approx(short.item(), rel=1e-4)
    with pytest.raises(MeasureError, match="last is from 1 to 3"):
        take("short_sighted_loss", context=1, last=4)


@pytest.mark.parametrize(
    ("what", "setup", "arguments", "sentence"),
    [
        ("loss", INDUCTION, {"first": 0}, "first is from 1 to 14 in this text, not 0"),
        ("weight", INDUCTION, {"layer": 2, "head": 0, "query": 0, "key": 0}, "has no head 0 of layer 2"),
        ("weight", INDUCTION, {"layer": 1, "head": 0, "query": 15, "key": 0}, "a query is from 0 to 14"),
        ("weight", INDUCTION, {"layer": 1, "head": 0, "query": 0, "key": 15}, "there is no key 15"),
        ("least_weight", BIGRAM, {"query": 0, "key": 0}, "no attention"),
        ("opening_key", BIGRAM, {}, "no attention"),
        ("cell", INDUCTION, {"tensor": "hook_embed", "at": [0, 999]}, "and no cell"),
        ("vector_length", INDUCTION, {"tensor": "hook_none"}, "no tensor hook_none"),
        ("vector_length", INDUCTION, {"tensor": "hook_embed", "position": 15}, "a position is from 0 to 14"),
        ("softmax_top", INDUCTION, {"layer": 0, "head": 0, "added": math.inf}, "added and times are numbers"),
        ("softmax_top", INDUCTION, {"layer": 0, "head": 0, "times": math.nan}, "added and times are numbers"),
        ("logit_lens_loss", INDUCTION, {"layers": 3}, "this model has 2 layers, not 3"),
        ("vector_change", SPEECH, {"other_prompt": "To", "tensor": "hook_embed"}, "as many tokens"),
        ("entropy_rate", Setup("ladder-2-positions"), {}, "more than the last token"),
        ("ladder_losses", INDUCTION, {"first": 0}, "first is from 1 to"),
        ("parameter_share", INDUCTION, {"part": "all"}, "part is one of attention"),
        ("random_products", INDUCTION, {"width": 0}, "width is from 1 to 512"),
        ("position_similarity", INDUCTION, {"one": 5, "other": 8}, "adds no positions"),
        ("position_similarity", SPANISH, {"one": -1, "other": 8}, "a position is from 0 to"),
        ("merges", INDUCTION, {"sample": "ab", "times": 0}, "times is from 1 to 50"),
        ("nearest_tokens", STORIES, {"token": "took", "count": 21}, "count is from 1 to 20"),
        ("short_sighted_loss", INDUCTION, {"context": 13, "last": 3}, "context \\+ last at most the 15 tokens"),
        ("stepped_loss", BIGRAM, {"rate": 11.0}, "rate is from 0 to 10"),
        ("written", INDUCTION, {"tokens": 201}, "it writes 1 to 200 tokens"),
        ("accuracy", SPEECH, {}, "nothing that has one right answer"),
        ("accuracy", STORIES, {"examples": 101}, "examples is from 1 to 100"),
        ("probability", INDUCTION, {"token": "kR"}, "is no token of induction"),
        ("repeat_loss", INDUCTION, {"time": 3}, "time is 1 or 2"),
        ("repeat_loss", STORIES, {}, "hasn't learned to continue"),
        ("shape", INDUCTION, {"field": "name"}, "no number name"),
        ("card", INDUCTION, {"field": "title"}, "has no title"),
    ],
)
def test_what_cant_be_measured_says_why(what, setup, arguments, sentence):
    with pytest.raises(MeasureError, match=sentence):
        take(what, setup, **arguments)


def test_the_shares_of_a_model_s_parts_are_all_of_it():
    for name in ("shakespeare", "number-words-en-es", "ladder-8-blocks"):
        shares = [take("parameter_share", Setup(name), part=part) for part in model_measures.PARTS]
        assert sum(shares) == pytest.approx(1, abs=0.002)  # a bias of the unembedding is in none of them
    assert take("parameter_share", part="feed-forward") == 0
    losses = take("ladder_losses", first=1) + take("ladder_losses")[1:]
    assert len(losses) == 8 and losses[0] == library.model("ladder-1-bigram").card.validation_loss


def test_the_entropy_of_a_table_of_pairs_is_that_of_what_it_writes():
    """Against the mean entropy along a long text that the table itself draws."""
    table = (
        library.model("ladder-1-bigram").model(torch.arange(65)[:, None])[:, 0].detach().double().softmax(-1).numpy()
    )
    random, token, found = np.random.default_rng(0), 0, []
    for _ in range(20_000):
        found.append(-(table[token] * np.log(table[token])).sum())
        token = random.choice(65, p=table[token] / table[token].sum())
    assert take("entropy_rate", BIGRAM) == pytest.approx(np.mean(found), abs=0.03)


def test_the_paper_s_tables_and_formulas_hold():
    for width in (1, 4, 64):
        assert take("random_products", width=width) == pytest.approx(math.sqrt(width), rel=0.02)
    table = sinusoidal_encoding(64, 192).double()
    for one, other in ((5, 8), (0, 3)):
        expected = float(torch.cosine_similarity(table[one], table[other], dim=0))
        found = take("position_similarity", SPANISH, one=one, other=other)
        assert found == pytest.approx(expected, abs=1e-5)


def test_a_pass_sees_the_answer_where_the_loss_does_not_and_no_later_token_changes_what_came_before():
    open_ = replace(SPEECH, changes="without~mask~")
    assert take("pass_loss", SPEECH) == pytest.approx(take("loss", SPEECH), abs=1e-5)
    assert take("pass_loss", open_) != pytest.approx(take("loss", open_), abs=0.01)
    for tensor, moves in (("hook_embed", False), ("blocks.0.hook_resid_post", True)):
        assert (take("vector_change", SPEECH, other_prompt="So be, or not", tensor=tensor) > 0) == moves


def test_a_translator_s_heads_see_its_source_and_pages_open_on_the_head_of_the_card():
    query, key = take("heaviest_cell", TRANSLATOR, layer=0, head=1, attention="cross")
    weights = [
        [take("weight", TRANSLATOR, layer=0, head=1, query=q, key=k, attention="cross") for k in range(4)]
        for q in range(2)
    ]
    assert weights[query][key] == np.max(weights)
    stories = Setup("stories", library.model("stories").card.examples[0])
    told = {name: library.model("stories").card.opening[name] for name in ("layer", "head")}
    assert take("opening_key", stories) == take("heaviest_key", stories, **told)
    assert take("opening_weight", stories, query=4) == take("heaviest_weight", stories, **told, query=4)


def test_a_model_is_settled_after_the_last_change_of_the_logit_lens():
    said = take("lens_likeliest")
    settled = take("settled_layer")
    assert len(set(said[settled:])) == 1 and (settled == 0 or said[settled - 1] != said[-1])


def test_what_ablation_costs_is_the_rise_of_the_loss():
    for layer, head, change in (
        (0, 2, "scale~blocks.0.attn.hook_z~2~~0.0"),
        (1, -1, "scale~blocks.1.hook_mlp_out~~~0.0"),
    ):
        setup = SPEECH if head == -1 else INDUCTION
        rise = take("loss", replace(setup, changes=change)) - take("loss", setup)
        assert take("ablation", setup, layer=layer, head=head) == pytest.approx(rise, abs=1e-4)
    assert take("spare_heads", below=99.0) == 8 and take("spare_heads", below=-99.0) == 0


def test_the_first_merge_is_the_most_frequent_pair_inside_a_word():
    text = "the cat sat on the mat the cat ate that"
    pairs = Counter(one + other for word in text.split() for one, other in itertools.pairwise(word))
    (first, often), (_, less) = pairs.most_common(2)
    assert often > less and take("merges", sample=text, times=3)[0] == first
    assert take("cut", Setup("stories", "Where is Tom?")) == ["Where", "is", "Tom", "?"]
    assert take("unknown_count", Setup("stories", "Where is Kim?")) == 1


def test_embeddings_are_compared_by_their_cosine():
    table = library.model("stories").model.embed.weight.detach()
    alike = torch.cosine_similarity(table, table[STORIES.token("took")], dim=1)
    order = [STORIES.label(int(token)) for token in alike.argsort(descending=True)]
    assert take("nearest_tokens", STORIES, token="took", count=3) == order[1:4]
    assert take("embedding_similarity", STORIES, one="took", other=order[1]) == pytest.approx(
        float(alike.sort()[0][-2])
    )
    assert take("nearest_to_sum", STORIES, plus="Mary", minus="Mary", other="park") == ["park"]


def test_the_slope_in_a_logit_is_the_probability_less_what_came():
    for token, came in (("e", 1), ("a", 0)):
        expected = take("probability", BIGRAM, token=token) - came
        assert take("logit_slope", BIGRAM, right="e", token=token) == pytest.approx(expected, abs=1e-6)


def test_steps_lower_the_loss_of_a_copy_alone():
    setup = Setup("ladder-8-blocks", "To be, o")
    before = take("loss", setup)
    assert take("stepped_loss", setup, rate=0.1, steps=0) == pytest.approx(before, abs=1e-5)
    once, often = (take("stepped_loss", setup, rate=0.1, steps=steps) for steps in (1, 3))
    assert often < once < before
    assert take("stepped_other_loss", setup, other_prompt=setup.prompt, rate=0.1) == once
    assert take("pass_loss", setup) == pytest.approx(before, abs=1e-5), "the model itself is left as it is"


CLIFF = [(step, 4.0 if step < 50 else 1.0 if step > 60 else 4.0 - 0.3 * (step - 50)) for step in range(0, 101, 2)]


class TestOwnTraining:
    def test_a_cliff_has_most_of_its_fall_in_one_place_and_a_slope_has_not(self):
        part, at = visitor_training_measures.steepest(CLIFF, 0.1)
        assert part == pytest.approx(1, abs=0.02) and at == pytest.approx(0.55, abs=0.01)
        part, at = visitor_training_measures.steepest([(step, 4.0 - step / 100) for step in range(0, 101, 2)], 0.1)
        assert part == pytest.approx(0.1, abs=0.001)
        part, at = visitor_training_measures.steepest([(0, 4.0), (2, 1.0), (100, 1.0)], 0.02)
        assert (part, at) == (pytest.approx(1), pytest.approx(0.01)), "from the very first step"
        with pytest.raises(MeasureError, match="didn't fall"):
            visitor_training_measures.steepest([(0, 1.0), (10, 1.0), (20, 2.0)], 0.1)

    def test_before_there_is_a_training_and_while_it_runs_it_says_what_to_do(self, monkeypatch):
        slot = SimpleNamespace(job=None)
        monkeypatch.setattr(visitor_training, "training_record", lambda: slot)

        def waits_for(words):
            with pytest.raises(NotMeasurableYet, match=words):
                take("own_last_loss")

        waits_for("press Train")
        job = slot.job = SimpleNamespace(
            state="running", checkpoint=None, progress=SimpleNamespace(validation_losses=CLIFF)
        )
        waits_for("under way")
        job.state = "finished"
        waits_for("something else")
        job.checkpoint = library.model("induction")
        assert take("own_last_loss") == 1.0 and take("own_steepest_fall") > 0.9
        job.progress.validation_losses = CLIFF[:7]
        waits_for("stopped too early")

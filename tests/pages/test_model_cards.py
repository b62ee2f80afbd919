"""Tests model cards: any file is refused with a sentence, or can be shown on every page."""

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.ui.markdown import plain
from pages.ui.models import attention_kinds
from pages.ui.views.prompt_batch import suggest_batch
from tests.helpers import tiny_config
from transformer import TASKS, ModelCard, Tokenizer
from transformer.checkpoints import model_card as cards

NUMBERS = (
    st.integers()
    | st.sampled_from([-1, 2**63 - 1, 2**63, 10**400, 1e308, -1e308])
    | st.floats(allow_nan=True, allow_infinity=True)
)
TEXTS = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(
    ["\ud800", "x" * 3_000, "", "![](http://a)", *TASKS]
)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
ANY_JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)
DETAILS = st.dictionaries(
    st.sampled_from(["title", "licence", "seconds", "machine", "steps", "best_step", "command"]) | TEXTS,
    ANY_JSON,
    max_size=5,
)
KIND = st.sampled_from(["self", "encoder", "decoder", "cross"])
HONEST = {
    "title": st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    **dict.fromkeys(("summary", "group", "language", "task"), TEXTS),
    **dict.fromkeys(("corpus", "training"), DETAILS),
    **dict.fromkeys(("parameters", "start_token_id", "end_token_id", "mask_token_id"), NUMBERS),
    **dict.fromkeys(("train_loss", "validation_loss", "accuracy"), NUMBERS | st.none()),
    "examples": st.lists(TEXTS, max_size=3) | st.just(["a"] * 20_000),
    **dict.fromkeys(("more_start_token_ids", "more_end_token_ids"), st.lists(NUMBERS, max_size=3)),
    "chat": st.none() | st.fixed_dictionaries({"before": st.text(), "after": st.text()}),
    "opening": st.fixed_dictionaries({"layer": NUMBERS, "head": NUMBERS, "attention": KIND | TEXTS}),
}
"""What a card's fields are more or less like."""
OPENING = {"layer": 1, "head": 0, "attention": "self"}


@st.composite
def written_cards(draw) -> object:
    """What a card's file may hold: anything, or fields more or less like a card's."""
    fields = {"title": "A title"}
    for name in draw(st.lists(st.sampled_from(sorted(HONEST)), unique=True, max_size=4)):
        fields[name] = draw(HONEST[name] | ANY_JSON)
    return draw(st.just(fields) | ANY_JSON)


def shown_on_every_page(card: ModelCard) -> None:
    """What the pages make of a card's fields; raises where a page would."""
    for text in (card.title, card.summary, card.group, *card.examples):
        json.dumps(text, ensure_ascii=False).encode()  # to the browser
    plain(card.title, 60).encode()
    suggest_batch(card.examples, Tokenizer.of_characters("ab"), 8)
    json.dumps(dataclasses.asdict(card), allow_nan=False, ensure_ascii=False).encode()  # to a file
    for shape in (tiny_config(), tiny_config(architecture="encoder-decoder", n_layers=3, n_encoder_layers=2)):
        for kind in attention_kinds.kinds_of(shape):
            layer, head = attention_kinds.first_layer_and_head(shape, card, kind)
            assert 0 <= layer < attention_kinds.layer_count(shape, kind) and 0 <= head < shape.n_heads
    for token in (*card.start_tokens, *card.stop_tokens):
        assert token is None or -(2**63) <= token < 2**63


@given(written_cards())
@settings(max_examples=150)
def test_any_json_is_a_card_that_can_be_shown_or_is_refused(written):
    try:
        card = ModelCard.from_dict(json.loads(json.dumps(written)))
    except ValueError as error:
        assert 0 < len(str(error).encode()) < 300
        return
    shown_on_every_page(card)


def nested(levels: int) -> dict:
    return {"a": nested(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        *(
            ("title", " ", "title"),
            ("title", "x" * 301, "title .* at most 300"),
            ("title", "a\ud83d", "title .* unicode"),
        ),
        *(("summary", "\udfff", "summary .* unicode"), ("summary", "x" * 1_001, "summary"), ("task", None, "task")),
        *((name, "x" * 61, name) for name in ("group", "language", "task")),
        *(("parameters", value, "parameters") for value in (10**400, True, -1, 1.5, None)),
        *(("validation_loss", value, "validation_loss") for value in (math.nan, math.inf, 1e300, -1.0)),
        *(("accuracy", 1.5, "accuracy .* less than or equal to 1"), ("accuracy", False, "accuracy")),
        *((name, 2**63, name) for name in ("start_token_id", "end_token_id", "mask_token_id")),
        *(("end_token_id", True, "end_token_id"), ("more_end_token_ids", [-1], "more_end_token_ids")),
        ("examples", ["a"] * 20_000, "examples .* at most 24 items"),
        *(("examples", value, "examples") for value in (["x" * 2_001], ["\ud800"], "ab", [None])),
        *(("opening", [0, 0], "opening .* valid dictionary"), ("opening", {"layer": 0, "head": 0}, "attention")),
        *(("opening", OPENING | {field: -1}, f"opening.{field} ") for field in ("layer", "head", "query")),
        *(("opening", OPENING | {"head": head}, "opening.head .* valid integer") for head in (True, 1.0)),
        ("opening", OPENING | {"attention": "all"}, "'self', 'encoder', 'decoder' or 'cross'"),
        *(("chat", value, "chat") for value in ({"before": "a"}, {"before": "x" * 20_001, "after": ""})),
        *(("training", {"seconds": value}, "training") for value in (10**400, math.inf, -(10**400), "\ud800")),
        *(("training", {"\ud800": 1}, "training"), ("training", nested(300), "levels")),
        ("training", {str(n): n for n in range(101)}, "100 values"),
        ("training", {"betas": [0.9] * 200}, "100 values"),
        *(("corpus", {"title": "x" * 2_001}, "corpus"), ("corpus", [1], "corpus")),
    ],
    ids=lambda value: ascii(value)[:16] if isinstance(value, str | int | float) else type(value).__name__,
)
def test_what_no_page_could_show_is_refused(field, value, words):
    with pytest.raises(ValueError, match=words) as caught:
        ModelCard.from_dict({"title": "A title", field: value})
    assert len(str(caught.value)) < 200


def test_as_much_as_may_be_is_read_and_shown():
    details = {str(number): 2**63 - 1 for number in range(cards.MOST_DETAILS - 4)} | {"a": {"b": ["x" * 2_000]}}
    full = {
        **{"title": "x" * 300, "summary": "x" * 1_000, **dict.fromkeys(("group", "language", "task"), "x" * 60)},
        "corpus": details | {"more": -(2**63) + 1},
        "training": details | {"seconds": 2.0**62},
        **{"parameters": 2**63 - 1, "accuracy": 1, "validation_loss": 0, "examples": ["é" * 2_000] * 24},
        "opening": OPENING | {"layer": 2**63 - 1},
    }
    card = ModelCard.from_dict(full)
    assert dataclasses.asdict(card) == {**dataclasses.asdict(ModelCard(title="x")), **full}
    shown_on_every_page(card)

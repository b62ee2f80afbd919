"""What the instrument of the page Generate accepts from a browser, for any input whatever, and what it is sent."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from pages.ui.components.writing import ACTS, LARGEST, LIMITS, Event, Extent, checked_controls, checked_event
from pages.ui.models import library, passages
from pages.ui.models.branches import LOGITS
from pages.ui.models.writer import Writer
from pages.ui.shell.choices import PACES, Visitor
from pages.ui.views.desk import CONTROLS, FIRST_TURN, TURN, TURN_ALONE, Desk
from tests.test_attention_component import ANYTHING, STRANGE
from tests.tiny_models import CONTEXT, save_tiny
from tests.writers import (
    FOREVER,
    HERE,
    begin,
    expected,
    save_models,
    the_model_at_rest,
    written,
)
from transformer import Recording, Sampling, token_statistics
from transformer.inference.scheduler import Schedulers
from transformer.inference.windows import window_start

EXTENTS = some.builds(
    Extent, attentions=some.sampled_from([(), ("cross", "decoder")]), layers=some.integers(0, 3),
    heads=some.integers(0, 3), paces=some.just(tuple(PACES)),
)  # fmt: skip
WHOLE = some.integers(-2, 60)
CONTROL_VALUES = STRANGE | WHOLE | some.sampled_from([0.5, 1.0, "fast", "cross", "self", "unbounded", 1e300])
EVENTS = some.fixed_dictionaries(
    {"branch": some.integers(0, 4), "seen": WHOLE, "have": WHOLE, "act": some.sampled_from([*ACTS, "fly"])},
    optional={name: WHOLE | STRANGE for name in ("goal", "place", "token", "to", "first", "last", "with", "step")}
    | {"controls": some.dictionaries(some.sampled_from([*CONTROLS, "other"]), CONTROL_VALUES) | ANYTHING},
)
"""Events that are nearly right."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(autouse=True)
def models(folder):
    """The tiny models, in every test."""


def is_whole(value):
    return type(value) is int and 0 <= value < 2**53


# What is told


@given(ANYTHING | EVENTS | some.dictionaries(some.sampled_from(["branch", "seen", "have", "act"]), ANYTHING), EXTENTS)
def test_of_anything_only_what_can_be_meant_is_taken(value, extent):
    found = checked_event(value, extent)
    if found is None:
        assert not (isinstance(value, dict) and all(is_whole(value.get(name)) for name in ("branch", "seen", "have")))
        return
    assert found.act in ACTS and set(found.asked) == set(ACTS[found.act])
    assert all(map(is_whole, [found.branch, found.seen, found.have, *found.asked.values()]))
    assert found.step is None or is_whole(found.step)
    assert found.act == value.get("act") or found.act == "rest"


@given(ANYTHING | some.dictionaries(some.sampled_from(CONTROLS), CONTROL_VALUES), EXTENTS)
def test_dials_are_turned_to_what_can_be_chosen(value, extent):
    found = checked_controls(value, extent)
    visitor = Visitor(layer=0, head=0)
    for name, chosen in found.items():
        assert value[name] == chosen
        assert type(chosen) is type(getattr(visitor, name))
        setattr(visitor, name, chosen)
    for name, (low, high) in LIMITS.items():
        assert low <= getattr(visitor, name) <= high
    assert found.get("layer", -1) < extent.layers and found.get("head", -1) < extent.heads
    assert visitor.pace in PACES and found.get("attention", "cross") in ("cross", *extent.attentions)
    assert visitor.sampling  # which refuses what can't be


def test_an_event_says_what_was_said():
    extent = Extent((), 2, 2, tuple(PACES))
    controls = {"temperature": 1, "top_k": 3, "top_p": 0.5, "seed": 4, "tokens": 9, "pace": "slow", "layer": 1,
                "head": 0}  # fmt: skip
    told = {"branch": 1, "seen": 20, "have": 25, "act": "pick", "place": 21, "token": 3, "controls": controls,
            "step": 19, "other": 1}  # fmt: skip
    assert checked_event(json.loads(json.dumps(told)), extent) == Event(
        "pick", 1, 20, 25, {**controls, "temperature": 1.0}, 19, {"place": 21, "token": 3}
    )
    assert checked_event({**told, "token": LARGEST}, extent).act == "rest"


# What becomes of it


def desk(writer=None, **visitor):
    writer = writer or begin()
    return Desk(Visitor(model=writer.model, **{"layer": 0, "head": 0, **visitor}), writer)


class Browser:
    """Takes messages as the instrument does, and tells what it has."""

    def __init__(self, desk):
        self.desk, self.tokens, self.branch = desk, [], None
        self.take(desk.answer())

    def take(self, message):
        self.message = Recording.from_bytes(message.to_bytes())
        about, tensors = self.message.metadata, self.message.tensors
        if about["whole"]:
            self.begin = len(about["prompt"]["text"])
            assert about["first"] == self.begin
        else:
            assert about["branch"] == self.branch
            assert self.begin <= about["first"] <= self.begin + len(self.tokens)
        self.branch = about["branch"]
        new = zip(tensors["ids"].tolist(), about["points"], tensors["dial"].tolist(), strict=True)
        kept = [] if about["whole"] else self.tokens[: about["first"] - self.begin]
        self.tokens = kept + [(token, point, about["dials"][dial]) for token, point, dial in new]
        return self.message

    def tell(self, act, seen=None, **details):
        about = self.message.metadata
        event = {
            "branch": self.branch, "seen": about["length"] if seen is None else seen, "act": act,
            "have": self.begin + len(self.tokens), "step": None, "controls": about["controls"], **details,
        }  # fmt: skip
        found = checked_event(json.loads(json.dumps(event)), EXTENT)
        self.desk.take(found)
        return self.take(self.desk.answer())


EXTENT = Extent((), 2, 2, tuple(PACES))


def test_who_writes_alone_has_nearly_all_of_each_second(monkeypatch):
    visited, given = desk(), []
    browser, write = Browser(visited), visited.writer.write

    def note(sampling, looked, seconds, ahead):
        given.append(seconds)
        write(sampling, looked, 0.0, ahead)

    monkeypatch.setattr(visited.writer, "write", note)
    browser.tell("write", goal=browser.begin + 40)
    browser.tell("write", goal=browser.begin + 40)
    monkeypatch.setattr(Schedulers, "texts", 1)
    browser.tell("write", goal=browser.begin + 40)
    assert given == [FIRST_TURN, TURN_ALONE, TURN] and FIRST_TURN < TURN < TURN_ALONE < 1


def in_python(desk):
    return [token.id for token in desk.writer.branch.tokens]


@given(some.lists(EVENTS, max_size=12))
def test_no_event_whatever_leaves_what_can_not_be(events):
    visited = desk(tokens=5)
    browser = Browser(visited)
    for event in events:
        found = checked_event(event, EXTENT)
        if found is None:
            continue
        # A browser that says what it hasn't: whatever it has is replaced, or else what it said is right.
        said = found.seen <= found.have == browser.begin + len(browser.tokens) and found.branch == browser.branch
        visited.take(found)
        message = visited.answer()
        if not said and not message.metadata["whole"]:
            message = (visited.forget(), visited.answer())[1]
        browser.take(message)
        writer, about = visited.writer, browser.message.metadata
        assert [token for token, _, _ in browser.tokens] == in_python(visited)
        assert about["length"] == writer.length <= writer.branch.end and about["branch"] == writer.branch.id
        assert writer.branch.ahead and writer.branch.ahead[0].sampling == visited.visitor.sampling
        assert about["goal"] is None or writer.length < about["goal"] <= writer.length + 500
        assert about["goal"] is None or writer.branch.end <= about["goal"] + 1
        assert about["step"] is None or len(writer.prompt) <= about["step"] < writer.length
        assert visited.visitor.text == library.tokenizer("shakespeare").decode([t.id for t in writer.written])
        assert [each["current"] for each in about["branches"]].count(True) == 1


@given(some.lists(some.tuples(some.sampled_from(["write", "rest", "stop"]), some.integers(0, 9)), max_size=12))
def test_what_the_browser_has_is_the_text_in_whatever_pieces_it_comes(acts):
    visited = desk(seed=7, temperature=0.9, pace="slow")
    browser = Browser(visited)
    for act, further in acts:
        seen = min(browser.message.metadata["length"] + further, browser.begin + len(browser.tokens))
        browser.tell(act, seen, **({"goal": seen + 12} if act == "write" else {}))
        assert browser.message.metadata["length"] == seen
    assert [token for token, _, _ in browser.tokens] == expected(visited.writer.prompt, len(browser.tokens))
    assert all(dial == {"temperature": 0.9, "top_k": 0, "top_p": 1.0, "seed": 7} for _, _, dial in browser.tokens)


def test_while_it_rests_nothing_is_computed():
    browser = Browser(visited := desk(tokens=9))
    browser.tell("write", goal=browser.begin + 9)
    while browser.message.metadata["goal"] and len(browser.tokens) < 10:
        browser.tell("write", browser.begin + len(browser.tokens) - 1, goal=browser.begin + 9)
    length = browser.begin + 9
    browser.tell("rest", length)
    assert browser.message.metadata["goal"] is None
    controls = browser.message.metadata["controls"]
    with the_model_at_rest():
        assert len(browser.tell("rest", step=length - 2).tensors["ids"]) == 0
        assert browser.message.metadata["step"] == length - 2
        message = browser.tell("rest", controls={**controls, "temperature": 0.3, "top_k": 5})
        assert (message.metadata["first"], len(message.tensors["ids"])) == (length, 1)
        assert message.metadata["dials"] == [{"temperature": 0.3, "top_k": 5, "top_p": 1.0, "seed": 1}]
        message = browser.tell("rows", first=0, last=FOREVER, controls={**controls, "head": 1})
        assert message.tensors["row_place"].tolist() == list(range(browser.begin, length + 1))
        assert message.metadata["rows_of"] == ["self", 0, 1]
        assert np.array_equal(browser.tell("logits", place=length - 1).tensors["logits_at"],
                              visited.writer.branch.tokens[-2].computed[LOGITS])  # fmt: skip
        browser.tell("clear")
        browser.tell("branch", to=1)
        assert browser.tell("compare", **{"with": 2}).metadata["compared"]["with"] == 2
        browser.tell("again")
    assert browser.message.metadata["length"] == length


def test_dials_that_are_turned_while_it_writes_are_heeded_from_the_next_token_on():
    browser = Browser(visited := desk(tokens=100))
    browser.tell("write", goal=browser.begin + 100)
    browser.tell("write", browser.begin + 3, goal=browser.begin + 100)
    controls = {**browser.message.metadata["controls"], "temperature": 0.0}
    message = browser.tell("rest", browser.begin + 5, controls=controls)
    assert message.metadata["first"] == browser.begin + 5 and len(message.tensors["ids"]) > 1
    assert message.metadata["goal"] == browser.begin + 100
    greedy = expected(visited.writer.tokens, 5, Sampling(temperature=0, seed=1))
    assert in_python(visited)[5:10] == greedy and message.metadata["points"][:5] == [0.0] * 5


def test_an_event_of_another_text_is_not_taken():
    browser = Browser(visited := desk())
    browser.desk.writer.begin("shakespeare", (1, 2, 3))
    visited.take(Event("rest", 1, 400, 500, {}, None, {}))
    assert visited.answer().metadata["whole"] and visited.writer.length == 3


# What is sent


@pytest.mark.parametrize("whole", [True, False])
def test_a_passage_holds_what_was_computed(whole):
    writer = written(begin(), CONTEXT + 6)
    first = len(writer.prompt) + (0 if whole else 4)
    found = passages.passage(writer, first, whole=whole, looked=HERE, head=1)
    tensors, about = found.tensors, found.metadata
    tokens = writer.branch.tokens[first - len(writer.prompt) :]
    assert tensors["ids"].tolist() == [token.id for token in tokens] and about["points"] == [t.point for t in tokens]
    for row, token in enumerate(tokens):
        probability, rank, entropy = token_statistics(torch.tensor(tensors["logits"][row]), token.id)
        assert np.allclose([tensors["probability"][row], tensors["entropy"][row]], [probability, entropy], atol=1e-6)
        assert tensors["rank"][row] == rank
    known = (tensors[f"row_{name}"] for name in ("place", "start", "length"))
    for place, start, length, end in zip(*known, np.cumsum(tensors["row_length"]), strict=True):
        assert start == window_start(place, CONTEXT) and length == place - start
        row = tensors["rows"][end - length : end]
        assert row.sum() == pytest.approx(1, abs=1e-5)
        assert np.array_equal(row, writer.rows(HERE, place, place)[place][1])
    assert tensors["row_place"].tolist() == list(range(first, writer.branch.end))
    assert ("prompt" in about) == whole == bool(about["kinds"])
    assert len(found.to_bytes()) > 0


def test_of_a_large_vocabulary_the_likeliest_are_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    save_tiny(tmp_path, "large", alphabet=[chr(place) for place in range(0x4E00, 0x4E00 + 300)])
    writer = Writer()
    writer.begin("large", (1, 2, 3))
    written(writer, 6)
    found = passages.passage(writer, 3, whole=True, looked=HERE, head=0)
    tensors, kinds = found.tensors, found.metadata["kinds"]
    logits = np.stack(writer.logits(range(3, 10)))
    assert tensors["top_ids"].shape == tensors["top_logits"].shape == (7, 64)
    for row, top in enumerate(tensors["top_ids"]):
        assert np.array_equal(tensors["top_logits"][row], np.sort(logits[row])[::-1][:64])
        assert {str(token) for token in top[:10]} <= kinds.keys()
        own = np.exp(tensors["top_logits"][row] - tensors["normaliser"][row]).sum()
        shares = np.exp(logits[row].astype(float))
        assert own == pytest.approx(np.sort(shares)[::-1][:64].sum() / shares.sum(), rel=1e-5)
    assert {str(token) for token in (1, 2, 3, *tensors["ids"].tolist())} <= kinds.keys()


def test_branches_are_named_by_where_they_part():
    writer = written(begin(), 6)
    label, place = library.tokenizer("shakespeare").label, writer.length - 2
    old = writer.branch.tokens[4].id
    writer.pick(place, (old + 1) % 60)
    written(writer, 3)
    writer.clear()
    first, picked, empty = passages.branches(writer, library.tokenizer("shakespeare"))
    assert (first["name"], first["parent"], first["at"], first["tokens"]) == ("the first text", None, None, 6)
    assert picked["name"] == f"at {place}: “{label((old + 1) % 60)}” instead of “{label(old)}”"
    assert (picked["parent"], picked["at"], len(picked["text"])) == (first["id"], place, 4)
    assert (empty["name"], empty["current"]) == (f"at {len(writer.prompt)}: nothing yet", True)
    beside = passages.compared(writer, writer.tree.branches[1])
    assert beside.metadata["compared"] == {"with": picked["id"], "first": len(writer.prompt)}
    assert beside.tensors["other.ids"].tolist() == [token.id for token in writer.tree.branches[1].written]


@pytest.mark.parametrize(
    ("text", "label", "shown"),
    [
        ("a", "a", "a"),
        (" ", "␣", " "),
        ("\n", "↵", "\n"),
        ("", "<pad>", " <pad>"),
        ("\x00", "<0x00>", "<0x00>"),
        ("\u202e", "<U+202E>", "<U+202E>"),  # would turn the direction of everything after it
        ("<script>", "<script>", "<script>"),
    ],
)
def test_text_is_shown_raw_unless_it_cannot_be_seen(text, label, shown):
    assert passages.shown_as(text, label) == shown


def test_a_word_is_named_with_and_without_the_space_before_it():
    tokenizer = library.tokenizer("translator")
    (word,) = tokenizer.encode("five")
    assert passages.names(tokenizer, [word]) == {str(word): ["five", " five", "five"]}
    letter = library.tokenizer("shakespeare").encode("a")[0]
    assert passages.names(library.tokenizer("shakespeare"), [letter]) == {str(letter): ["a", "a"]}

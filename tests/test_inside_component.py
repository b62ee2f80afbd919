"""What the page Inside accepts from a browser: for any input whatever, only what the pass has."""

import dataclasses
import json
import math

from hypothesis import given
from hypothesis import strategies as st

from pages.ui.components.inside import (
    FOLDS,
    LATEST,
    MOST_CELLS,
    MOST_PARTS,
    WHOLE_UP_TO,
    Chosen,
    Extent,
    Place,
    checked_choice,
    checked_parts,
    checked_place,
)
from tests.helpers import any_configs
from tests.test_attention_component import ANYTHING
from transformer import attention_modules
from transformer.inference.circuits import circuits_of
from transformer.inference.outline import tensors_of


@st.composite
def extents(draw):
    """What a pass of any model has, over a text of any length."""
    config = draw(any_configs())
    tokens = draw(st.integers(1, 300))
    source = draw(st.integers(1, 9)) if config.architecture == "encoder-decoder" else 0
    sizes = {name: dict(zip(info.dims, info.sizes, strict=True))
             for name, info in tensors_of(config, tokens, source).items()}  # fmt: skip
    modules = [module for found in attention_modules(config).values() for module in found]
    circuits = {module: circuits_of(config, module) for module in modules}
    return Extent(tokens, source, config.n_heads, config.vocab_size, sizes, circuits)


def one_of(count):
    return st.none() | st.integers(0, count - 1) if count else st.none()


@st.composite
def choices(draw, extent):
    """Anything that can be looked at."""
    name = draw(st.sampled_from(sorted(extent.places)))
    sizes = extent.tensors.get(name, {}).values()
    cell = st.none() | st.tuples(*(st.integers(0, size - 1) for size in sizes)) if sizes else st.none()
    return Chosen(
        name, draw(one_of(extent.tokens)), draw(one_of(extent.sources)), draw(one_of(extent.heads)), draw(cell),
        draw(st.none() | st.floats(0, LATEST)), draw(st.sets(st.sampled_from(FOLDS)).map(in_order)),
        draw(one_of(extent.vocabulary)), draw(circuits(extent)),
    )  # fmt: skip


def in_order(folds):
    return tuple(sorted(folds, key=FOLDS.index))


@st.composite
def circuits(draw, extent):
    offered = [(kind, attention) for attention, kinds in extent.circuits.items() for kind in kinds]
    if not offered or not extent.heads:
        return None
    places = st.tuples(st.integers(0, 9)) | st.tuples(*[st.integers(0, 9)] * 3)
    found = (*draw(st.sampled_from(offered)), draw(st.integers(0, extent.heads - 1)), *draw(places))
    return draw(st.none() | st.just(found))


def through_a_browser(chosen):
    return json.loads(json.dumps(dataclasses.asdict(chosen)))


def can_be_looked_at(found, extent):
    """The same as the component says, said again in other words."""
    names = list(extent.tensors)
    counts = {"token": extent.tokens, "source": extent.sources, "head": extent.heads, "candidate": extent.vocabulary}
    places = {name: getattr(found, name) for name in counts if getattr(found, name) is not None}
    sizes = list(extent.tensors.get(found.open, {}).values())
    return (
        (found.open == "" or any(name == found.open or name.startswith(found.open + ".") for name in names))
        and all(type(place) is int and place in range(counts[name]) for name, place in places.items())
        and (found.cell is None or (len(found.cell) == len(sizes) > 0
             and all(type(at) is int and at in range(size) for at, size in zip(found.cell, sizes, strict=True))))
        and (found.moment is None or (type(found.moment) is float and 0 <= found.moment <= LATEST))
        and found.folds == in_order(set(found.folds))
        and (found.circuit is None or (found.circuit[0] in extent.circuits[found.circuit[1]]
             and found.circuit[2] in range(extent.heads) and len(found.circuit) in (4, 6)
             and all(type(place) is int and place >= 0 for place in found.circuit[2:])))
    )  # fmt: skip


# What is looked at


@given(st.data(), extents())
def test_what_was_sent_can_come_back(data, extent):
    chosen = data.draw(choices(extent))
    assert checked_choice(through_a_browser(chosen) | {"count": 7}, extent) == chosen


@given(ANYTHING, extents())
def test_of_anything_only_what_can_be_looked_at_is_taken(value, extent):
    found = checked_choice(value, extent)
    assert found is None or can_be_looked_at(found, extent)


@given(st.data(), extents())
def test_one_part_that_is_wrong_spoils_all_of_it(data, extent):
    """Any one field is anything: what is taken can be looked at, and says what was sent."""
    sent = through_a_browser(data.draw(choices(extent)))
    name = data.draw(st.sampled_from(sorted(sent)))
    odd = [-1, 300, True, 0.0, "0", [0], [0, 0], [[0]], {}, math.nan, math.inf, "blocks", "blocks.0.attn", "logits"]
    sent[name] = data.draw(ANYTHING | st.sampled_from(odd))
    found = checked_choice(sent, extent)
    if found is not None:
        assert can_be_looked_at(found, extent)
        assert through_a_browser(found) == sent


@given(st.data(), extents())
def test_a_choice_without_one_of_its_parts_is_none(data, extent):
    sent = through_a_browser(data.draw(choices(extent)))
    for name in sent:
        assert checked_choice({key: value for key, value in sent.items() if key != name}, extent) is None


# What is asked for


def parts_of(extent):
    names = st.sampled_from([*extent.tensors, "", "blocks", "hook_"])
    small, token = st.integers(-1, 12), st.integers(-1, 400)
    return (
        st.tuples(st.just("tensor"), names) | st.tuples(st.just("slice"), names, small) | st.just(("checks",))
        | st.tuples(st.just("who"), token, small)
        | st.tuples(st.just("circuit"), st.sampled_from(["qk", "ov", ""]),
                    st.sampled_from([*extent.circuits, "blocks", "blocks.9.attn"]), small)
        | st.tuples(st.sampled_from(["tensor", "head", "checks"]), small)
    )  # fmt: skip


def cells_of(part, extent):
    sizes = dict(extent.tensors[part[1]]) if part[0] in ("tensor", "slice") else {"": 0}
    return math.prod(size for name, size in sizes.items() if part[0] != "slice" or name != "head")


@given(st.data(), extents())
def test_parts_that_are_sent_are_there(data, extent):
    asked = data.draw(st.lists(parts_of(extent).map(list) | ANYTHING, max_size=80) | ANYTHING)
    found = checked_parts(asked, extent)
    assert len(found) <= MOST_PARTS
    for part in found:
        assert list(part) in [list(each) if isinstance(each, list) else each for each in asked]
        match part:
            case ("tensor", name):
                assert "head" not in extent.tensors[name] or cells_of(part, extent) <= WHOLE_UP_TO
            case ("slice", name, head):
                assert type(head) is int and head in range(extent.tensors[name]["head"])
            case ("who", pos, token):
                assert type(pos) is type(token) is int and pos in range(extent.tokens)
                assert token in range(extent.vocabulary)
            case ("circuit", kind, attention, head):
                assert kind in extent.circuits[attention]
                assert type(head) is int and head in range(extent.heads)
            case _:
                assert part == ("checks",)


@given(st.data(), extents())
def test_parts_that_there_are_come_in_the_order_they_were_asked_for(data, extent):
    name = st.sampled_from(sorted(extent.tensors))
    parts = st.tuples(st.just("tensor"), name) | st.just(("checks",)) | st.tuples(
        st.just("who"), st.integers(0, extent.tokens - 1), st.integers(0, extent.vocabulary - 1)
    )
    asked = [part for part in data.draw(st.lists(parts, max_size=MOST_PARTS))
             if part[0] != "tensor" or cells_of(part, extent) <= WHOLE_UP_TO]  # fmt: skip
    found = checked_parts([list(part) for part in asked], extent)
    if sum(cells_of(part, extent) for part in asked) <= MOST_CELLS:
        assert found == asked
    assert sum(cells_of(part, extent) for part in found) <= MOST_CELLS


def test_one_answer_is_no_larger_than_it_may_be():
    size = MOST_CELLS // 2
    extent = Extent(1, 0, 2, 9, {"a": {"pos": size}, "b": {"pos": size}, "c": {"pos": size}, "d": {"pos": 3 * size},
                                 "e": {"head": 2, "pos": size}})  # fmt: skip
    assert checked_parts([["tensor", name] for name in "abc"], extent) == [("tensor", "a"), ("tensor", "b")]
    assert checked_parts([["tensor", "d"]], extent) == [("tensor", "d")]  # a large weight, of a wide model
    assert checked_parts([["tensor", "d"], ["tensor", "a"]], extent) == [("tensor", "d")]
    assert checked_parts([["tensor", "e"]], extent) == []
    assert checked_parts([["slice", "e", 1]], extent) == [("slice", "e", 1)]


@given(extents(), st.data())
def test_a_place_of_an_attention_leads_to_its_page_and_nothing_else_does(extent, data):
    modules = [name.removesuffix(".hook_pattern") for name in extent.tensors if name.endswith("hook_pattern")]
    strange = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*modules, "x"])
    fields = [field.name for field in dataclasses.fields(Place)]
    told = data.draw(ANYTHING | st.fixed_dictionaries(dict.fromkeys(fields, strange)))
    found = checked_place(told, extent)
    assert found is None or found.module in modules
    if modules:
        sizes = extent.tensors[f"{modules[-1]}.hook_pattern"]
        head, key = (data.draw(one_of(sizes[dim])) for dim in ("head", "key"))
        there = Place(modules[-1], head, sizes["query"] - 1, key, "raw")
        assert checked_place(dataclasses.asdict(there), extent) == there
        assert checked_place({**dataclasses.asdict(there), "query": sizes["query"]}, extent) is None

"""What the instrument's component accepts from a browser, and how an overview is packed: for any input whatever."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.components.attention import (
    DIRECTIONS,
    MOST_PARTS,
    RULES,
    SHARES,
    STAGES,
    Chosen,
    Extent,
    as_message,
    checked_choice,
    checked_parts,
    checked_zoom,
    packed,
)
from transformer import Recording

EXTENTS = st.builds(
    Extent, layers=st.integers(1, 6), heads=st.integers(1, 6), queries=st.integers(1, 40), keys=st.integers(1, 40),
    measures=st.sampled_from([(), ("first", "spread"), ("previous", "first")]),
)  # fmt: skip
STRANGE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
ANYTHING = st.recursive(
    STRANGE, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
"""Whatever JSON can say."""


def spans(count: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.integers(0, count - 1).flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, count)))


@st.composite
def choices(draw, extent: Extent) -> Chosen:
    """Anything that can be looked at."""
    zoom = st.tuples(spans(extent.queries), spans(extent.keys)).map(lambda found: (*found[0], *found[1]))
    return Chosen(
        layer=draw(st.integers(0, extent.layers - 1)), head=draw(st.integers(0, extent.heads - 1)),
        query=draw(st.none() | st.integers(0, extent.queries - 1)),
        key=draw(st.none() | st.integers(0, extent.keys - 1)),
        stage=draw(st.sampled_from(STAGES)), zoom=draw(st.none() | zoom),
        without=tuple(sorted(draw(st.sets(st.sampled_from(RULES))))),
        order=draw(st.sampled_from(["", *extent.measures])),
        direction=draw(st.sampled_from(DIRECTIONS)),
        share=draw(st.sampled_from(SHARES)),
    )  # fmt: skip


def through_a_browser(chosen: Chosen) -> dict:
    return json.loads(json.dumps(as_message(chosen)))


def can_be_looked_at(found: Chosen, extent: Extent) -> bool:
    """The same as the component says, said again in other words."""
    counts = {"layer": extent.layers, "head": extent.heads, "query": extent.queries, "key": extent.keys}
    places = {name: getattr(found, name) for name in counts}
    return (
        all(type(place) is int and place in range(counts[name])
            for name, place in places.items() if place is not None or name in ("layer", "head"))
        and (found.zoom is None or (found.zoom[0] < found.zoom[1] and found.zoom[2] < found.zoom[3]
                                    and min(found.zoom) >= 0
                                    and found.zoom[1] <= extent.queries and found.zoom[3] <= extent.keys))
        and found.stage in STAGES and found.order in ("", *extent.measures)
        and set(found.without) <= set(RULES) and list(found.without) == sorted(set(found.without))
        and found.direction in DIRECTIONS and found.share in SHARES
    )  # fmt: skip


# What is looked at


@given(st.data(), EXTENTS)
def test_what_was_sent_can_come_back(data, extent):
    chosen = data.draw(choices(extent))
    assert checked_choice(through_a_browser(chosen) | {"count": 7}, extent) == chosen


@given(ANYTHING, EXTENTS)
def test_of_anything_only_what_can_be_looked_at_is_taken(value, extent):
    found = checked_choice(value, extent)
    assert found is None or can_be_looked_at(found, extent)


@given(st.data(), EXTENTS)
def test_one_part_that_is_wrong_spoils_all_of_it(data, extent):
    """Any one field is anything: what is taken can be looked at, and says what was sent."""
    sent = through_a_browser(data.draw(choices(extent)))
    name = data.draw(st.sampled_from(sorted(sent)))
    sent[name] = data.draw(ANYTHING | st.sampled_from([-1, 40, True, 0.0, "0", [0], {}, ["mask", "mask"], "mask"]))
    found = checked_choice(sent, extent)
    if found is not None:
        assert can_be_looked_at(found, extent)
        back = through_a_browser(found)
        back["without"], sent["without"] = sorted(set(back["without"])), sorted(set(sent["without"]))
        sides = ("top", "bottom", "left", "right")
        sent["zoom"] = sent["zoom"] and {side: sent["zoom"][side] for side in sides}
        assert back == sent


@given(st.data(), EXTENTS)
def test_a_choice_without_one_of_its_parts_is_none(data, extent):
    sent = through_a_browser(data.draw(choices(extent)))
    for name in ("layer", "head", "stage", "without", "order", "direction", "share"):
        assert checked_choice({key: value for key, value in sent.items() if key != name}, extent) is None


# A part of the text


SIDES = st.dictionaries(st.sampled_from(["top", "bottom", "left", "right"]), st.integers(-2, 42) | STRANGE)


@given(SIDES | ANYTHING, EXTENTS)
def test_a_zoom_is_within_the_text_and_has_cells(value, extent):
    found = checked_zoom(value, extent)
    if found is not None:
        top, bottom, left, right = found
        assert found == tuple(value[side] for side in ("top", "bottom", "left", "right"))
        assert all(type(place) is int for place in found)
        assert 0 <= top < bottom <= extent.queries and 0 <= left < right <= extent.keys


@given(st.data(), EXTENTS)
def test_any_part_of_the_text_will_do(data, extent):
    (top, bottom), (left, right) = data.draw(spans(extent.queries)), data.draw(spans(extent.keys))
    zoom = {"top": top, "bottom": bottom, "left": left, "right": right}
    assert checked_zoom(zoom, extent) == (top, bottom, left, right)


# What is asked for


REQUESTS = st.lists(
    st.tuples(st.sampled_from(["head", "row", "tail", ""]), st.integers(-1, 7), st.integers(-1, 7)).map(list)
    | st.tuples(st.sampled_from(["head", "row"]), *3 * [st.integers(-1, 41)]).map(list)
    | ANYTHING,
    max_size=80,
)


@given(REQUESTS | ANYTHING, EXTENTS)
def test_parts_that_are_sent_are_there(value, extent):
    found = checked_parts(value, extent)
    assert len(found) <= MOST_PARTS
    limits = (extent.layers, extent.heads, extent.queries)
    for what, *places in found:
        assert len(places) == {"head": 2, "row": 3}[what]
        assert all(type(place) is int and place in range(limit) for place, limit in zip(places, limits, strict=False))
    if isinstance(value, list):
        wanted = [tuple(part) for part in value if isinstance(part, list)]
        assert all(part in wanted for part in found)


@given(st.data(), EXTENTS)
def test_parts_that_there_are_come_in_the_order_they_were_asked_for(data, extent):
    layer, head = st.integers(0, extent.layers - 1), st.integers(0, extent.heads - 1)
    part = st.tuples(st.just("head"), layer, head) | st.tuples(
        st.just("row"), layer, head, st.integers(0, extent.queries - 1)
    )
    asked = data.draw(st.lists(part, max_size=MOST_PARTS + 5))
    assert checked_parts([list(each) for each in asked], extent) == asked[:MOST_PARTS]


# The overview


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.booleans(), st.randoms())
def test_an_overview_can_be_unpacked(layers, heads, queries, keys, causal, random):
    keys = queries if causal else keys
    cells = np.array([random.randrange(255) for _ in range(layers * heads * queries * keys)], dtype=np.uint8)
    cells = cells.reshape(layers, heads, queries, keys)
    if causal:
        cells[..., ~np.tri(queries, dtype=bool)] = 255
    measures = np.zeros((layers, heads, 2), dtype=np.float32)
    found = packed(Recording({"overview": cells, "measures": measures}, {"causal": causal, "changed": []}))
    assert found["measures"] is measures
    unpacked = found["overview"]
    if causal:
        assert unpacked.shape[-1] == queries * (queries + 1) // 2
        whole = np.full_like(cells, 255)
        rows, columns = np.tril_indices(queries)
        whole[..., rows, columns] = unpacked
        unpacked = whole
    assert (unpacked == cells).all()

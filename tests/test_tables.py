"""Every picture's numbers as a file: written when they are asked for, and no sooner."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest

from pages.ui.tables import matrix_table
from tests.app_driver import checked


def page():
    import pandas as pd
    import streamlit as st

    from pages.ui.tables import offer_data

    count = st.session_state["count"]
    table = pd.DataFrame({"token": ["é", "␣", '","'][:count], "weight": [0.1, 0.25, 1e-9][:count]})
    offer_data(table, "Numbers", "n.csv")


@pytest.fixture
def offered(monkeypatch):
    """What buttons have offered, as functions that write the file."""
    found = []
    add = MediaFileManager.add_deferred
    monkeypatch.setattr(MediaFileManager, "add_deferred", lambda self, write, *args, **kwargs: (
        found.append(write), add(self, write, *args, **kwargs))[1])  # fmt: skip
    return found


@pytest.fixture
def written(monkeypatch):
    """How often a table has been written as CSV."""
    calls, write = [], pd.DataFrame.to_csv
    monkeypatch.setattr(pd.DataFrame, "to_csv", lambda *args, **kwargs: (calls.append(1), write(*args, **kwargs))[1])
    return calls


def visit(count: int) -> AppTest:
    at = AppTest.from_function(page, default_timeout=60)
    at.session_state["count"] = count
    return checked(at.run())


def test_no_file_is_written_until_it_is_asked_for(offered, written):
    at = visit(3)
    checked(at.run())
    assert not written
    content = offered[-1]()
    assert len(written) == 1
    assert pd.read_csv(io.BytesIO(content)).equals(at.dataframe[0].value)
    assert content.decode("utf-8").startswith("token,weight\né,0.1\n")


def test_a_button_asks_for_no_file_when_it_is_drawn_and_for_no_run_when_it_is_pressed(offered):
    (button,) = [found.proto for found in visit(3).get("download_button")]
    assert not button.url  # the browser looks after each address, and the file may be gone by then
    assert button.deferred_file_id and button.ignore_rerun


def test_a_table_without_rows_offers_no_file(offered):
    at = visit(0)
    assert not offered and not at.get("download_button") and not at.dataframe
    assert [caption.value for caption in at.caption] == ["There are no numbers yet."]


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 100))
def test_a_row_of_the_table_is_a_cell_of_the_matrices(queries, keys, offset):
    weight = np.arange(queries * keys, dtype=float).reshape(queries, keys)
    labels = [f"q{n}" for n in range(queries)], [f"k{n}" for n in range(keys)]
    table = matrix_table({"weight": weight, "visible": weight > 2}, *labels, offset)
    assert len(table) == weight.size
    for row in table.itertuples(index=False):
        query, key = row[0] - offset, row[2] - offset
        assert (row[1], row[3], row[4], row[5]) == (f"q{query}", f"k{key}", weight[query, key], weight[query, key] > 2)

"""Tests the tables and files of every figure's numbers, and how probabilities are written."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest

from pages.ui.number_format import percent
from pages.ui.tables import as_csv, matrix_table
from tests.app_driver import checked, open_drawers


@pytest.mark.parametrize(
    ("share", "written"), json.loads((Path(__file__).parents[1] / "percentages.json").read_text())
)  # number_format.test.mjs tests the browser on the same table
def test_probabilities_have_as_many_digits_as_tell(share, written):
    assert percent(share) == written


@given(st.floats(0, 1))
def test_only_0_and_1_are_written_as_such_and_all_others_within_half_a_percentage_point(share):
    written = percent(share)
    assert abs(float(written.strip("<>%")) / 100 - share) <= 0.005
    assert (written == "0%") == (share == 0) and (written == "100%") == (share == 1)


def page():
    import pandas as pd
    import streamlit as st

    from pages.ui.tables import offer_data

    count = st.session_state["count"]
    table = pd.DataFrame({"token": ["é", "␣", '","'][:count], "weight": [0.1, 0.25, 1e-9][:count]})

    def make():
        st.session_state["made"] = True
        return table

    offer_data(make, "Numbers", "n.csv")


def visit(count: int) -> AppTest:
    at = AppTest.from_function(page, default_timeout=120)
    at.session_state["count"] = count
    return checked(at.run())


def test_a_table_and_its_file_are_made_once_its_drawer_is_open_and_saving_it_asks_for_no_run(monkeypatch):
    written, add = [], MediaFileManager.add

    def added(self, content, *args, **kwargs):
        written.append(content)
        return add(self, content, *args, **kwargs)

    monkeypatch.setattr(MediaFileManager, "add", added)
    at = visit(3)
    assert "made" not in at.session_state and not at.dataframe and not written
    shown = open_drawers(at).dataframe[0].value
    (content,), (button,) = written, [found.proto for found in at.get("download_button")]
    assert pd.read_csv(io.BytesIO(content)).equals(shown)
    assert content.decode("utf-8").startswith("\ufefftoken,weight\né,0.1\n")  # the mark tells Excel that it is UTF-8
    assert button.url and button.ignore_rerun
    at = open_drawers(visit(0))
    assert not at.get("download_button") and not at.dataframe
    assert [caption.value for caption in at.caption] == ["There are no numbers yet."]


def test_a_spreadsheet_takes_no_text_for_a_formula_and_numbers_stay_numbers():
    token = ["=1+1", "@SUM(A1)", "-2+3", "+x", "\tx", "-", "=", "-0.5", "plain"]
    table = pd.DataFrame({"=a": token, "weight": [-1.5] * 9, 3: [True] * 9, "any": [-2, "-x", None, *[-1e-7] * 6]})
    written = pd.read_csv(io.BytesIO(as_csv(table)), dtype={"'=a": str})
    assert list(written.columns) == ["'=a", "weight", "3", "any"]
    assert list(written["'=a"]) == ["'=1+1", "'@SUM(A1)", "'-2+3", "'+x", "'\tx", "-", "=", "-0.5", "plain"]
    assert written["weight"].eq(-1.5).all() and written["3"].all()
    assert list(written["any"][:2]) == ["-2", "'-x"] and pd.isna(written["any"][2])
    assert float(written["any"][3]) == -1e-7


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 100))
def test_a_row_of_the_table_is_a_cell_of_the_matrices(queries, keys, offset):
    weight = np.arange(queries * keys, dtype=float).reshape(queries, keys)
    labels = [f"q{n}" for n in range(queries)], [f"k{n}" for n in range(keys)]
    table = matrix_table({"weight": weight, "visible": weight > 2}, *labels, offset)
    assert len(table) == weight.size
    for row in table.itertuples(index=False):
        query, key = row[0] - offset, row[2] - offset
        assert (row[1], row[3], row[4], row[5]) == (f"q{query}", f"k{key}", weight[query, key], weight[query, key] > 2)

"""Tests the tables and files of every figure's numbers."""

import io

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import AppTest

from pages.ui.tables import as_csv, matrix_table
from tests.app_driver import checked, open_drawers


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


def visit(count: int, opened: bool = True) -> AppTest:
    at = AppTest.from_function(page, default_timeout=120)
    at.session_state["count"] = count
    checked(at.run())
    return open_drawers(at) if opened else at


def test_a_table_is_made_once_its_drawer_is_open():
    at = visit(3, opened=False)
    assert "made" not in at.session_state and not at.dataframe
    assert len(open_drawers(at).dataframe) == 1


def test_the_file_is_the_table(monkeypatch):
    written = []
    add = MediaFileManager.add
    monkeypatch.setattr(
        MediaFileManager,
        "add",
        lambda self, content, *args, **kwargs: (written.append(content), add(self, content, *args, **kwargs))[1],
    )
    at = visit(3)
    (content,) = written
    assert pd.read_csv(io.BytesIO(content)).equals(at.dataframe[0].value)
    assert content.decode("utf-8").startswith("\ufefftoken,weight\né,0.1\n")  # the mark tells Excel that it is UTF-8


def test_a_spreadsheet_takes_no_text_for_a_formula_and_numbers_stay_numbers():
    token = ["=1+1", "@SUM(A1)", "-2+3", "+x", "\tx", "-", "=", "-0.5", "plain"]
    table = pd.DataFrame({"=a": token, "weight": [-1.5] * 9, 3: [True] * 9, "any": [-2, "-x", None, *[-1e-7] * 6]})
    written = pd.read_csv(io.BytesIO(as_csv(table)), dtype={"'=a": str})
    assert list(written.columns) == ["'=a", "weight", "3", "any"]
    assert list(written["'=a"]) == ["'=1+1", "'@SUM(A1)", "'-2+3", "'+x", "'\tx", "-", "=", "-0.5", "plain"]
    assert written["weight"].eq(-1.5).all() and written["3"].all()
    assert list(written["any"][:2]) == ["-2", "'-x"] and pd.isna(written["any"][2])
    assert float(written["any"][3]) == -1e-7


def test_pressing_the_button_asks_for_no_run():
    (button,) = [found.proto for found in visit(3).get("download_button")]
    assert button.url and button.ignore_rerun


def test_a_table_without_rows_offers_no_file():
    at = visit(0)
    assert not at.get("download_button") and not at.dataframe
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

"""Offers the numbers of a figure as a table and as a CSV file."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import streamlit as st
from pandas.api.types import is_numeric_dtype

from pages.ui.expanders import drawer
from pages.ui.frame import widgets
from transformer.api.csv_file import as_text


def offer_data(make: Callable[[], pd.DataFrame], title: str, file_name: str) -> None:
    """A closed drawer with a table and a button that saves it as CSV.

    make: makes the table, once the drawer is open.
    file_name: no other drawer of the page has it.
    """
    drawer(title, f"drawer_{file_name}", lambda: _show(make(), file_name), icon=":material/table:")


def _show(table: pd.DataFrame, file_name: str) -> None:
    if table.empty:
        st.caption("There are no numbers yet.")
        return
    st.dataframe(table, hide_index=True, height=280)
    # Written at once: Streamlit drops a file that is written on demand after two runs of anybody's, which in a class
    # can be before the browser has fetched it. And pressing it runs nothing, which would replace the file.
    widgets.download_button("Save as CSV", as_csv(table), file_name, "text/csv", key=f"save_{file_name}")


def as_csv(table: pd.DataFrame) -> bytes:
    """A table as CSV that spreadsheets read too: UTF-8 with a byte order mark, texts as `as_text` has them."""
    named = table.rename(columns=as_text)
    written = named.apply(lambda column: column if is_numeric_dtype(column) else column.map(as_text))
    return written.to_csv(index=False).encode("utf-8-sig")


def matrix_table(
    columns: dict[str, np.ndarray], query_labels: Sequence[str], key_labels: Sequence[str], offset: int = 0
) -> pd.DataFrame:
    """Matrices (query, key) as rows of one table: a row a cell, a column a matrix.

    offset: the position of row 0 and of column 0 in the text.
    """
    query, key = np.indices((len(query_labels), len(key_labels)))
    return pd.DataFrame(
        {
            "query position": query.ravel() + offset,
            "query": np.asarray(query_labels, dtype=object)[query.ravel()],
            "key position": key.ravel() + offset,
            "key": np.asarray(key_labels, dtype=object)[key.ravel()],
            **{name: np.asarray(values).ravel() for name, values in columns.items()},
        }
    )

"""Lays out containers side by side, as many in a row as fit."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def side_by_side(name: str, count: int) -> list[DeltaGenerator]:
    """`count` containers: three as thirds, others two in a row. name: no other such row of a page has it."""
    size = "thirds" if count == 3 else "halves"
    with st.container(key=f"side_by_side_{size}_{name}"):
        return [st.container() for _ in range(count)]

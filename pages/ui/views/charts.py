"""Shows figures at full width, with larger type in presentation mode."""

import plotly.graph_objects as go
import streamlit as st

from pages.ui.figures.presentation import enlarge_type
from pages.ui.frame import page_guide

LARGE = 1.45
"""How many times as large type is then. Where a figure's labels are counted for a phone, or for a third of a page, a
presented one has more than that much room."""


def chart(figure: go.Figure, key: str) -> None:
    """Show a figure. key: no other one of the app has it."""
    drawn = enlarge_type(go.Figure(figure), LARGE) if page_guide.is_presenting() else figure
    st.plotly_chart(drawn, key=key, theme=None, width="stretch", config={"displaylogo": False})

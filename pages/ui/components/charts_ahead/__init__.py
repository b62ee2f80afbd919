"""The script that draws charts, fetched before a page needs it: the largest part of Streamlit's frontend by far."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.ui.components.sources import script

_mount = st.components.v2.component("headsup_charts_ahead", js=script(__file__, "charts_ahead.js"))
_FRONTEND = Path(st.__file__).parent / "static" / "static" / "js"
_SCRIPT = next((file.name for file in _FRONTEND.glob("PlotlyChart.*.js")), "")
"""Its name has a hash in it; empty where there is none of that name, and then nothing is fetched."""


def fetch_charts_ahead() -> None:
    """Let the browser fetch it in a calm moment, once a tab."""
    _mount(key="charts_ahead", data={"script": _SCRIPT})

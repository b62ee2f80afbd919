"""A tiny app on the protocol between shell and Python, which draws something of the page state on Masks alone."""

from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st
from streamlit.components.v2 import component

from pages.ui.host.exchange import KEY, exchange
from transformer import frontend

MARKUP = """<label>Prompt <input data-part="prompt"></label> <label>Layer <input data-part="layer"></label>
<output data-part="stale"></output>"""
shell = component("page_protocol_shell", html=MARKUP, js=frontend.bundle(Path(__file__).with_name("shell.js")))

page = st.navigation(
    [st.Page("Generate.py", title="Generate", default=True), st.Page("Masks.py", title="Masks")], position="top"
)
told = exchange(page.title).told(page.title)
path = urlsplit(st.context.url or "").path
shell(key=KEY, data={**told, "path": path}, on_page_state_change=lambda: None)
st.session_state["runs"] = st.session_state.get("runs", 0) + 1
page.run()

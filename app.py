"""The app as it is served: its pages, the engine over HTTP beside them, and what a server does before anybody comes."""

import streamlit as st

from pages.ui.serving import WAIT_UNTIL_PREPARED, check_settings, preparing, routes

check_settings()

app = st.App("pages/main.py", lifespan=preparing, routes=routes(), middleware=[WAIT_UNTIL_PREPARED])

"""The app as it is served: its pages, and what a server does before anybody comes."""

import streamlit as st

from pages.ui.serving import SAY_WHERE_THE_SERVER_IS, WAIT_UNTIL_PREPARED, check_settings, preparing

check_settings()

app = st.App("pages/main.py", lifespan=preparing, middleware=[SAY_WHERE_THE_SERVER_IS, WAIT_UNTIL_PREPARED])

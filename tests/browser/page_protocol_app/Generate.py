"""Python draws nothing of the page state here."""

import streamlit as st

st.title("Generate")
st.text(f"Run {st.session_state['runs']}")

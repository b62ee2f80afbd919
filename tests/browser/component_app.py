"""Serves the demo app with its components' modules."""

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages.ui.serving import routes

app = st.App(Path(__file__).with_name("component_demo.py"), routes=routes())

"""Holds the custom Streamlit components, for what Streamlit and Plotly can't draw."""

"""Components of our own, for what Streamlit and Plotly cannot draw without a flicker."""

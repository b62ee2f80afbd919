"""Positions: how a transformer is told where each token stands."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import positions as positions_view

session = open_page(
    "Positions",
    "Attention by itself can't tell the order of its tokens. The paper adds a fixed table of sines and cosines to the "
    "embeddings: each row a position, each pair of columns a wave of its own length.",
)
table = positions_view.sinusoidal(session)
positions_view.formula(session, table)
positions_view.waves(session, table)
positions_view.similarity(session, table)
positions_view.rotation(session)
positions_view.of_the_model(session)
finish()

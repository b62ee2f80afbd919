"""Positions: how a transformer is told where each token stands."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import bodies

session = open_page(
    "Positions",
    "Attention by itself can't tell the order of its tokens. The paper adds a fixed table of sines and cosines to the "
    "embeddings: each row a position, each pair of columns a wave of its own length.",
)
bodies.positions(session)
finish()

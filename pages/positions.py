"""Positions: how a transformer is told where each token stands."""

from pages.ui.frame.sidebar import session
from pages.ui.views import bodies

bodies.positions(session())

"""Positions: how a transformer is told where each token stands."""

from pages.ui.shell.sidebar import session
from pages.ui.views import bodies

bodies.positions(session())

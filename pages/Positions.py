"""Positions: how a transformer is told where each token stands."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

page_contents.positions(session())

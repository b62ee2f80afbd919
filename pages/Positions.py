"""Runs the page Positions: how a transformer learns where each token stands."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

page_contents.positions(session())

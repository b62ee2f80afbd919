"""Masks: which tokens a query may see, what padding is for, and what a model predicts without its mask."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import bodies

session = open_page(
    "Masks",
    "A mask says which keys each query may see. What it hides gets a score of −∞, and so a weight of 0. "
    "Rows are queries, columns are keys.",
)
session.require_tokens()
bodies.masks(session)
finish()

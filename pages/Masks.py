"""Masks: which tokens a query may see, what padding is for, and what a model predicts without its mask."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import masks as masks_view
from pages.ui.views import padded_batch as batch_view

session = open_page(
    "Masks",
    "A mask says which keys each query may see. What it hides gets a score of −∞, and so a weight of 0. "
    "Rows are queries, columns are keys.",
)
session.require_tokens()
masks_view.three_masks(session)
batch_view.batch(session)
masks_view.without_mask(session)
finish()

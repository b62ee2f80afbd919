"""Masks: which tokens a query may see, what padding is for, and what a model predicts without its mask."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.masks(session())

"""Runs the page Masks: what a mask hides, and what a model predicts without it."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.masks(session())

"""Runs the page Generate: a model writes a text token by token."""

from pages.ui.frame.page import session
from pages.ui.views.generate_export import offer_page

session().require_tokens()
offer_page(session())

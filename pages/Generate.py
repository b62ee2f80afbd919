"""Runs the page Generate: a model writes a text token by token."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.generate(session())

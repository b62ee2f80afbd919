"""Runs the page Inside: the whole forward pass as one picture, down to every number."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.inside(session())

"""Runs the page Attention: every head's weights, and how each weight is computed."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.attention(session())

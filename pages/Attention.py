"""Attention: who looks at whom, in every head, and how each weight comes about."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.attention(session())

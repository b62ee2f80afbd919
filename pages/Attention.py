"""Attention: who looks at whom, in every head, and how each weight comes about."""

from pages.ui.frame.page import session
from pages.ui.views import bodies

session().require_tokens()
bodies.attention(session())

"""Attention: who looks at whom, in every head, and how each weight comes about."""

from pages.ui.frame.sidebar import session
from pages.ui.views import bodies

session().require_tokens()
bodies.attention(session())

"""Attention: who looks at whom, in every head, and how each weight comes about."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import bodies

session = open_page(
    "Attention",
    "Each row is a query, the token that looks; each column is a key, a token it may look at. A row's weights sum to "
    "one. What the mask hides has no weight at all.",
)
session.require_tokens()
bodies.attention(session)
finish()

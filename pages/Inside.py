"""Inside: the whole forward pass as one picture, from the prompt to the next token, down to every number."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import bodies

session = open_page(
    "Inside",
    "Tokens are columns, depth is height; only attention moves information from token to token. Open a block, a "
    "tensor, a cell: each number says what it is made of.",
)
session.require_tokens()
bodies.inside(session)
finish()

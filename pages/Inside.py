"""Inside: the whole forward pass as one picture, from the prompt to the next token, down to every number."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import inside as inside_view
from pages.ui.views import inside_files

session = open_page(
    "Inside",
    "Tokens are columns, depth is height. Attention moves information from token to token; everything else happens to "
    "each token alone. Open a block, a tensor, a cell: each number says what it is made of.",
)
session.require_tokens()
looked = inside_view.choose(session)
inside_view.explain(session, looked)
inside_view.show(session, looked)
inside_files.offer_page(session, looked)
inside_view.offer_numbers(session, looked)
finish()

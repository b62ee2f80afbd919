"""What if: change a part of the model, and see what becomes of what it says."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import bodies

session = open_page(
    "What if",
    "Looking shows what is there; taking something away shows what it is for. Every number here is what the model "
    "computes once it is changed.",
)
session.require_tokens()
bodies.what_if(session)
finish()

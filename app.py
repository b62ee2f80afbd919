"""Generate: watch a model write token by token, and see what it weighed and where it looked."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import generate

session = open_page(
    "Generate",
    "Press *Generate* and the model writes on, one token at a time. Every token is tinted by how sure the model was; "
    "orange marks show where it looked to choose it.",
    writes=True,
)
session.require_tokens()
generate.show(session)
finish()

"""What if: change a part of the model, and see what becomes of what it says."""

from pages.ui.frame.page import session
from pages.ui.views import bodies

session().require_tokens()
bodies.what_if(session())

"""What if: change a part of the model, and see what becomes of what it says."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.what_if(session())

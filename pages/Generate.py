"""Generate: watch a model write token by token, and see what it weighed and where it looked."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.generate(session())

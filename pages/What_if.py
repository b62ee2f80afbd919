"""Runs the page What if: ablation, activation patching, comparison, and ladders of models."""

from pages.ui.frame.page import session
from pages.ui.views import page_contents

session().require_tokens()
page_contents.what_if(session())

"""Runs the page Train: a visitor trains a small transformer and watches its attention form."""

from pages.ui.frame import model_files
from pages.ui.frame.page import session
from pages.ui.views import page_contents

page_contents.train(session())
model_files.exchange()

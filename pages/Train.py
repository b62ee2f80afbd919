"""Train: choose a task or a text and a small architecture, and watch its attention form."""

from pages.ui.shell import model_files
from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views import bodies

session = open_page(
    "Train",
    "Train a tiny transformer here and now. Its loss falls, its samples begin to make sense, and the attention of "
    "one fixed text takes shape, head by head.",
    reads_prompt=False,
)
bodies.train(session)
model_files.exchange()
finish()

"""What draws in a browser what a model computed: ES modules and style sheets; `show` and the saved page beside them.

Node, a notebook and a server's pages load every module as it is; `inline.bundle` is for pages that get a text.
"""

from pathlib import Path

from .inline import bundle

__all__ = ["FOLDER", "bundle"]

FOLDER = Path(__file__).parent
"""Where the scripts (*.js) and style sheets (*.css) are."""

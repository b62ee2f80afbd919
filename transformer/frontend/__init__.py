"""The frontend: ES modules and style sheets that draw recordings in a browser, and saved pages in Python.

Node loads every module as it is; `bundle` makes one of it and all that it imports, for the app
and for pages that get a text.
"""

from pathlib import Path

from .module_bundle import bundle

__all__ = ["FOLDER", "bundle"]

FOLDER = Path(__file__).parent
"""Where the scripts (*.js) and style sheets (*.css) are."""

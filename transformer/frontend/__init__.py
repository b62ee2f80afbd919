"""The frontend: ES modules and style sheets that draw recordings in a browser, and saved pages in Python.

Node loads every module as it is; `bundle` makes one of it and all that it imports, for pages that get a text, and
`bundle_in_parts` a few, for the app.
"""

from pathlib import Path

from .module_bundle import bundle, bundle_in_parts

__all__ = ["FOLDER", "bundle", "bundle_in_parts"]

FOLDER = Path(__file__).parent
"""Where the scripts (*.js) and style sheets (*.css) are."""

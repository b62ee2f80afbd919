"""What pages of their own have where scripts don't run, or a browser is too old for them."""

from . import FOLDER

SCRIPT = (FOLDER / "startup_errors.js").read_text(encoding="utf-8")
"""Comes before the page's modules, and says why nothing is shown."""
WITHOUT_SCRIPTS = "<noscript><p>This page computes what it shows: it needs a browser that runs scripts.</p></noscript>"

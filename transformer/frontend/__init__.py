"""The frontend: ES modules and style sheets that draw recordings in a browser, and saved pages in Python.

Node loads every module as it is; `bundle` makes one of it and all that it imports, for pages that get a text, and
`bundle_in_parts` a few, for the app.
"""

from pathlib import Path

from .module_bundle import bundle, bundle_in_parts

__all__ = ["FOLDER", "STYLES", "bundle", "bundle_in_parts", "sheets"]

FOLDER = Path(__file__).parent
"""Where the scripts (*.js) and style sheets (*.css) are."""
STYLES = (
    *("tooltip.css", "save.css", "intervention_controls.css", "head_overview.css", "top_tokens.css"),
    *("attention/attention.css", "inside/inside.css", "inside/tensors.css", "inside/circuits.css"),
    *("generation/generation.css", "filling/filling.css", "lessons/lessons.css", "page/shell.css"),
    *("page/changes_menu.css", "masks/masks.css", "matrix/matrix.css", "what_if/text_comparison.css"),
    *("positions/word_orders.css", "what_if/what_if.css", "what_if/effects.css"),
)
"""The style sheets of the shell and of all views; `type_scale.css` comes before them."""


def sheets(*names: str) -> str:
    """Style sheets, one after the other."""
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)

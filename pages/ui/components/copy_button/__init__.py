"""Shows a button that copies a text which isn't on screen."""

from pages.ui.components.assets import custom_component

_mount = custom_component(__file__)


def copy_button(label: str, text: str, *, key: str) -> None:
    """Show the button. text: what it copies."""
    _mount(key=key, data={"label": label, "text": text})

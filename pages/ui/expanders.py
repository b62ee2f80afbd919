"""Shows expanders whose content is computed when they are opened."""

from collections.abc import Callable, Mapping

import streamlit as st

from pages.ui.host.exchange import page_state

PARTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Masks": {"every_prediction": ("positions_shown",), "batch": ("batch", "batch_row", "pad_side")},
    "Positions": {"waves": ("waves",), "similarity": (), "rotation": ("shift",)},
}
"""By page, its folded parts, and the parameters that are chosen in each."""


def lazy_expander(title: str, name: str, show: Callable[[], None]) -> None:
    """A folded part of a page. name: in `PARTS`; show: draws the part."""
    _is_open(name)
    drawer(title, f"fold_{name}", show)


def folded(page: str) -> str:
    """The page if all of its parts are folded, and Python draws nothing on it; else empty."""
    return page if page in PARTS and not any(map(_is_open, PARTS[page])) else ""


def _is_open(name: str) -> bool:
    """Whether a part is open. It opens by itself when a choice that it holds isn't as at first: a link names it."""
    key, seen = f"fold_{name}", f"seen_of_{name}"
    holds = next(parts[name] for parts in PARTS.values() if name in parts)
    is_named = not page_state().texts.keys().isdisjoint(holds)
    if is_named and (key not in st.session_state or not st.session_state.get(seen)):
        st.session_state[key] = True
    st.session_state[seen] = is_named
    return bool(st.session_state.get(key))


def drawer(title: str, key: str, show: Callable[[], None], *, icon: str | None = None) -> None:
    """A folded part of a page that is drawn only while it is open: what nobody sees takes a browser as long."""
    opened = st.expander(title, key=key, icon=icon, on_change="rerun")
    if opened.open:
        with opened:
            show()

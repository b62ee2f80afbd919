"""Draws the frame that all pages share, and runs the page that the address names."""

import streamlit as st

from pages.ui.expanders import folded
from pages.ui.frame.page import Finished, PageOptions, finish, lay_out, open_page
from transformer.frontend.page_titles import SENTENCES
from transformer.inference.analysis import LogitsError

# In the dark theme's accent, which can be read on a light page, too.
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 24"><text y="18" textLength="89" '
    'lengthAdjust="spacingAndGlyphs" font-family="sans-serif" font-size="19" font-weight="bold" '
    'fill="#1f7ac2">HeadsUp</text></svg>'
)

st.logo(LOGO, size="medium")
page = st.navigation(
    [st.Page(f"{title.replace(' ', '_')}.py", title=title, default=title == "Generate") for title in SENTENCES],
    position="top",
)
layout = lay_out()
try:
    if page.title == "Learn":
        from pages.ui.views.learn import opened_step, step

        open_page(layout, page.title, opened_step.open_requested, first=step.show)
    else:
        is_train = page.title == "Train"
        decide = lambda: PageOptions(  # noqa: E731
            SENTENCES[page.title], uses_model=not is_train, is_bare=is_train, folded=folded(page.title)
        )
        open_page(layout, page.title, decide)
    page.run()
except Finished:
    pass
except LogitsError as error:
    st.error(str(error))
finish()

"""Draws the frame that all pages share, and runs the page that the address names."""

from functools import partial

import streamlit as st

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
        fixed = {"uses_model": False, "is_bare": True} if page.title == "Train" else {}
        open_page(layout, page.title, partial(PageOptions, SENTENCES[page.title], **fixed))
    page.run()
except Finished:
    pass
except LogitsError as error:
    st.error(str(error))
finish()

"""Draws the frame that all pages share, and runs the page that the address names."""

import streamlit as st

from pages.ui.frame.page import PAGES, Finished, PageOptions, finish, lay_out, open_page
from transformer.inference.analysis import LogitsError

# In the dark theme's accent, which can be read on a light page, too.
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 24"><text y="18" textLength="89" '
    'lengthAdjust="spacingAndGlyphs" font-family="sans-serif" font-size="19" font-weight="bold" '
    'fill="#1f7ac2">HeadsUp</text></svg>'
)

# What each page shows, in one line; Learn says by itself what is open.
PAGE_OPTIONS = {
    "Generate": PageOptions("HeadsUp shows every number inside a tiny transformer as it writes.", writes=True),
    "Attention": PageOptions("Each row is a query, each column a key it may look at. A row's weights sum to one."),
    "Masks": PageOptions("A mask says which keys a query may see. A hidden key gets a score of −∞, and so no weight."),
    "Positions": PageOptions("Attention alone can't tell the order of its tokens, so models add positions."),
    "Inside": PageOptions(
        "From the prompt up through the layers to the predicted token. Open a layer, a tensor, a number."
    ),
    "What if": PageOptions("Change a part of the model and see what difference it makes."),
    "Train": PageOptions(
        "Train a tiny transformer; watch its loss fall and its attention form.", reads_prompt=False, uses_model=False
    ),
}

st.logo(LOGO, size="medium")
page = st.navigation(
    [st.Page(file, title=title, default=title == "Generate") for title, file in PAGES.items()], position="top"
)
layout = lay_out()
try:
    if page.title == "Learn":
        from pages.ui.views.learn import opened_step, step

        open_page(layout, page.title, opened_step.open_requested, first=step.show)
    else:
        open_page(layout, page.title, lambda: PAGE_OPTIONS[page.title])
    page.run()
except Finished:
    pass
except LogitsError as error:
    st.error(str(error))
finish()

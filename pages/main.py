"""What Streamlit runs for every page: the frame that all of them share, and in it the page that the address names."""

import contextlib

import streamlit as st

from pages.ui.frame.page import PAGES, Finished, Opening, finish, lay_out, open_page

# What each page shows, in one line; Learn says by itself what is open.
OPENINGS = {
    "Generate": Opening("The model continues the prompt, one token at a time.", writes=True),
    "Attention": Opening("Each row is a query, each column a key it may look at. A row's weights sum to one."),
    "Masks": Opening("A mask says which keys a query may see. A hidden key gets a score of −∞, and so no weight."),
    "Positions": Opening("Attention by itself can't tell the order of its tokens: it must be told their positions."),
    "Inside": Opening("Tokens are columns, depth is height. Open a layer, a tensor, a number."),
    "What if": Opening("Take a part away, and see what it was for."),
    "Train": Opening(
        "Train a tiny transformer, and watch its loss fall and its attention take shape.",
        reads_prompt=False,
        uses_model=False,
    ),
}

page = st.navigation(
    [st.Page(file, title=title, default=title == "Generate") for title, file in PAGES.items()], position="top"
)
places = lay_out()
with contextlib.suppress(Finished):
    if page.title == "Learn":
        from pages.ui.views.learn import entering, step

        open_page(places, page.title, entering.opening, first=step.show)
    else:
        open_page(places, page.title, lambda: OPENINGS[page.title])
    page.run()
finish(places)

"""What Streamlit runs for every page: the frame that all of them share, and in it the page that the address names."""

import contextlib

import streamlit as st

from pages.ui.frame.page import PAGES, Finished, Opening, finish, lay_out, open_page

OPENINGS = {
    "Generate": Opening(
        "Press *Generate* and the model writes on, one token at a time. Every token is tinted by how sure the model "
        "was; orange marks show where it looked to choose it.",
        writes=True,
    ),
    "Attention": Opening(
        "Each row is a query, the token that looks; each column is a key, a token it may look at. A row's weights sum "
        "to one. What the mask hides has no weight at all."
    ),
    "Masks": Opening(
        "A mask says which keys each query may see. What it hides gets a score of −∞, and so a weight of 0. "
        "Rows are queries, columns are keys."
    ),
    "Positions": Opening(
        "Attention by itself can't tell the order of its tokens. The paper adds a fixed table of sines and cosines to "
        "the embeddings: each row a position, each pair of columns a wave of its own length."
    ),
    "Inside": Opening(
        "Tokens are columns, depth is height; only attention moves information from token to token. Open a block, a "
        "tensor, a cell: each number says what it is made of."
    ),
    "What if": Opening(
        "Looking shows what is there; taking something away shows what it is for. Every number here is what the model "
        "computes once it is changed."
    ),
    "Train": Opening(
        "Train a tiny transformer here and now. Its loss falls, its samples begin to make sense, and the attention of "
        "one fixed text takes shape, head by head.",
        reads_prompt=False,
    ),
}

page = st.navigation(
    [st.Page(file, title=title, url_path=title.replace(" ", "_"), default=title == "Generate")
     for title, file in PAGES.items()],
    position="top",
)  # fmt: skip
places = lay_out()
with contextlib.suppress(Finished):
    if page.title == "Learn":
        from pages.ui.views.learn import entering, step

        open_page(places, page.title, entering.opening, first=step.show)
    else:
        open_page(places, page.title, lambda: OPENINGS[page.title])
    page.run()
finish(places)

"""What each page shows below its heading: for the page itself, and for a lesson that shows it.

A page imports its own parts alone, and when it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import streamlit as st

from pages.ui.frame.choices import QUESTIONS
from pages.ui.frame.page import Session
from pages.ui.models import library, places


def generate(session: Session) -> None:
    """The page Generate."""
    from pages.ui.views import generate as view

    view.show(session)


def attention(session: Session) -> None:
    """The page Attention."""
    from pages.ui.views import attention as view
    from pages.ui.views.attention_files import offer_files

    kind = places.chosen_attention(session.config, session.visitor.attention)
    if kind is None:
        st.info(
            "This model has no layers, and so no attention: it goes straight from a token to the next one's odds."
        )
        return
    looked = view.choose(session, kind)
    view.explain(session, looked)
    with _reading(session):
        view.show(session, looked)
    offer_files(session, looked)


def masks(session: Session) -> None:
    """The page Masks."""
    from pages.ui.views import masks as view
    from pages.ui.views import padded_batch

    view.three_masks(session)
    padded_batch.batch(session)
    with _reading(session):
        view.without_mask(session)


def positions(session: Session) -> None:
    """The page Positions."""
    from pages.ui.views import positions as view

    table = view.sinusoidal(session)
    view.formula(session, table)
    view.waves(session, table)
    view.similarity(session, table)
    view.rotation(session)
    view.of_the_model(session)


def inside(session: Session) -> None:
    """The page Inside."""
    from pages.ui.views import inside as view
    from pages.ui.views import inside_files

    looked = view.choose(session)
    view.explain(session, looked)
    with _reading(session):
        view.show(session, looked)
    inside_files.offer_page(session, looked)
    view.offer_numbers(session, looked)


def what_if(session: Session) -> None:
    """The page What if."""
    from pages.ui.frame import widgets
    from pages.ui.views.what_if import ablation, beside, ladder, traced

    views = {
        "ablation": ("Ablation", ablation.show),
        "traced": ("Activation patching", traced.show),
        "beside": ("Comparison", beside.show),
        "ladder": ("The ladder", ladder.show),
    }
    question = widgets.segmented_control("Question", QUESTIONS, "question", lambda name: views[name][0],
                                         label_visibility="collapsed")  # fmt: skip
    views[question][1](session)


def train(session: Session) -> None:
    """The page Train, less what is saved and uploaded there."""
    from pages.ui.models import own_training
    from pages.ui.views import train_choice, train_progress

    if own_training.slot().job is not None:
        train_progress.watch()
    else:
        train_choice.show()


def _reading(session: Session) -> AbstractContextManager:
    """Says what is waited for while a large model reads a long text; a tiny one is through before anybody looks."""
    is_large = library.is_large(library.opened(session.name).checkpoint)
    return st.spinner("The model reads the text …", show_time=True) if is_large else nullcontext()


BODIES: dict[str, Callable[[Session], None]] = {
    "Generate": generate,
    "Attention": attention,
    "Masks": masks,
    "Positions": positions,
    "Inside": inside,
    "What if": what_if,
    "Train": train,
}
"""By the page's title."""
NEEDS_NO_TEXT = ("Positions", "Train")
"""The pages that show something even for a prompt that can't be read."""

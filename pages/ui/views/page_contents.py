"""Draws what Python has of each page's content, for the page itself and for lessons that embed it.

A page imports its own parts alone, and when it is drawn.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import streamlit as st

from pages.ui.computations import activations
from pages.ui.frame.page import Session
from pages.ui.models import attention_kinds, library
from transformer.api.open_models import is_for_browsers
from transformer.api.pass_inputs import PassInputs


def generate(session: Session) -> None:
    from pages.ui.views.generate_export import offer_page

    offer_page(session)


def attention(session: Session) -> None:
    from pages.ui.views.attention_export import offer_files, text_of
    from transformer.api.outlines import overview

    if kind := attention_kinds.shown_kind(session.config, session.state.attention):
        inputs = session.text.pass_over(text_of(session))
        _compute_ahead(overview, inputs, kind)
        offer_files(session, inputs, kind)


def masks(session: Session) -> None:
    from pages.ui.expanders import lazy_expander
    from pages.ui.views import encoder_mask, padded_batch, without_mask

    with st.container(gap="small"):
        if session.config.n_layers:
            title, view = "Every prediction of the text, with the mask and without it", without_mask
            if not session.config.is_causal:
                title, view = "Every token, masked in turn", encoder_mask
            with _large_model_spinner(session):
                lazy_expander(title, "every_prediction", lambda: view.every_prediction(session))
        lazy_expander("A batch of prompts and its padding", "batch", lambda: padded_batch.batch(session))


def positions(session: Session) -> None:
    from pages.ui.expanders import lazy_expander
    from pages.ui.views import positions as view

    with st.container(gap="small"):
        lazy_expander("Waves and wavelengths", "waves", lambda: view.waves(session))
        lazy_expander("Similarity of positions", "similarity", lambda: view.similarity(session))
        lazy_expander("A step as a rotation", "rotation", lambda: view.rotation(session))


def inside(session: Session) -> None:
    from pages.ui.views.inside_export import offer_numbers, offer_page
    from transformer.api.outlines import outline

    inputs = session.text.pass_over(session.text.read())
    _compute_ahead(outline, inputs)
    offer_page(session, inputs)
    offer_numbers(session, inputs)


def train(session: Session) -> None:
    """The page Train, less what is saved and uploaded there."""
    from pages.ui.session import visitor_training
    from pages.ui.views import train_choice, train_progress

    if visitor_training.training_record().job is not None:
        train_progress.watch()
    else:
        train_choice.show()


def _compute_ahead(compute: Callable[..., object], inputs: PassInputs, *more: object) -> None:
    """Have what the browser asks for first computed while it still loads what draws it.

    A small model that was shown before computes in the browser by now.
    """
    before, now = st.session_state.get("model_shown"), (inputs.model.name, inputs.model.version)
    st.session_state["model_shown"] = now
    if before != now or not is_for_browsers(inputs.model):
        activations.compute_ahead(compute, *inputs.passed, *more, inputs.interventions)


def _large_model_spinner(session: Session) -> AbstractContextManager:
    """Says what is waited for while a large model reads a long text; a tiny one is through before anybody looks."""
    is_large = library.is_large(library.opened(session.name).checkpoint)
    return st.spinner("The model reads the text …", show_time=True) if is_large else nullcontext()


CONTENTS: dict[str, Callable[[Session], None]] = {
    "Generate": generate,
    "Attention": attention,
    "Masks": masks,
    "Positions": positions,
    "Inside": inside,
    "Train": train,
}
"""By the page's title; Python draws nothing of What if."""
NEEDS_NO_TEXT = ("Positions", "Train")
"""The pages that show something even for a prompt that can't be read."""

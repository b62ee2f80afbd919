"""Draws the frame of every page: heading, model, prompt, changes, notices and link."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.components.assets import reader, without_comments
from pages.ui.components.events import hear_all
from pages.ui.components.input_drafts import keep_input_drafts
from pages.ui.computations.activations import Interventions, Tokens
from pages.ui.figures.palette import Theme
from pages.ui.frame import model_picker, page_guide, saved_view, session_restore, state, widgets
from pages.ui.frame.page_text import Text, read_prompt
from pages.ui.host.exchange import exchange, page_state
from pages.ui.host.page_state import FILES, PageState
from pages.ui.host.shell import shell
from pages.ui.index_page import ICON
from pages.ui.models import attention_kinds, library
from pages.ui.models.changes import read_changes
from pages.ui.models.library import OpenModel
from pages.ui.session import visitor_training as training
from transformer import ModelConfig, Tokenizer

STYLE = f"<style>{without_comments(reader(__file__)('style.css'))}</style>"


@dataclass(frozen=True)
class Session:
    """What a page works on. `tokens` is None if the prompt can't be read; a message has said why.

    A decoder continues `tokens`: the prompt, or in an encoder–decoder the start token; there the prompt is `source`.
    `interventions` are in force in every pass of the page. `state` has the layer and the head that the shell
    shows where the model lacks those of a link.
    """

    state: PageState
    text: Text
    theme: Theme
    name: str
    config: ModelConfig
    prompt: str
    tokens: Tokens | None
    source: Tokens = ()
    interventions: Interventions = ()

    @property
    def file_name(self) -> str:
        """The prefix of saved files."""
        return library.file_name(self.name)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's, with the prompt's new words."""
        return self.text.model.checkpoint.tokenizer

    def require_tokens(self) -> Tokens:
        """The prompt's tokens; ends the page if there are none."""
        if self.tokens is None:
            finish_early()
        return self.tokens


@dataclass(frozen=True)
class PageOptions:
    """How a page opens.

    sentence: below its title. view: the page whose view it embeds. uses_model: whether it is about a model and a
    prompt. is_bare: whether the shell shows neither. is_fixed: whether nobody may change them. is_linked: whether there
    is a link to share. folded: the one of both pages whose parts are all folded, so that Python draws nothing of it.
    """

    sentence: str
    view: str = ""
    uses_model: bool = True
    is_bare: bool = False
    is_fixed: bool = False
    is_linked: bool = True
    folded: str = ""


class Finished(Exception):
    """A page has nothing more to show, and its run ends."""


@dataclass
class PageLayout:
    """The containers of the frame, from top to bottom."""

    shell: DeltaGenerator
    heading: DeltaGenerator


def lay_out() -> PageLayout:
    """Create the empty frame."""
    return PageLayout(st.container(key="frame_shell"), st.container(key="frame_heading"))


def open_page(
    layout: PageLayout, title: str, decide: Callable[[], PageOptions], *, first: Callable[[], None] = lambda: None
) -> None:
    """Fill the frame: browser title, bar, heading, notices. The page reads the result with `session()`.

    decide: says how the page opens, once the page state is known; it may still change that. first: draws what a page
    has to say of no model and no prompt, before they are picked: thirty who are led to it at once read that before
    the first of them has a whole page.
    """
    hear_all()  # what was broken off, if anything was
    saved_view.restore_outside_lessons(title)
    state.begin_run(title)
    saved_view.keep_own_view()
    opening = decide()
    st.set_page_config(
        page_title=f"{title} · HeadsUp", page_icon=ICON, layout="wide", initial_sidebar_state="collapsed"
    )
    library.begin_run()
    training.store_result()
    session_restore.find_record()
    try:
        name = model_picker.pick_model(finish_early)
    finally:  # where its model can't be opened, the shell offers others
        _draw_shell(layout, title, opening)
    with layout.heading:
        saved_view.show_back_links()
        _show_training()
    first()
    current, config = page_state(), library.config(name)
    prompt = next(iter(library.model(name).card.examples), "") if current.prompt is None else current.prompt
    tokens, source = read_prompt(name, prompt, current.reads)
    model = library.opened(name).with_new_words([prompt])
    interventions, _ = read_changes(current.changes, config)  # the shell says why others are left out
    written = current.written if tokens and all(token < config.vocab_size for token in current.written) else ()
    text = Text(model, tokens or (), source, written, interventions)
    st.session_state["session"] = Session(
        _clamped(current, model), text, theme(), name, config, prompt, tokens, source, interventions
    )


def _draw_shell(layout: PageLayout, title: str, opening: PageOptions) -> None:
    with layout.shell:
        is_exporting = any(st.session_state.get(f"drawer_{name}") for name in ("numbers", "page", "live"))
        draws = FILES if is_exporting else opening.view
        told = {"draws": draws, "notices": state.notices(), "offers_tour": page_guide.offers_tour()}
        shell(
            title,
            {**vars(opening), **told},
            model_picker.catalogue(),
            exchange(title),
            state.next_page(),
            saved_view.open_page,
            lambda _: state.notices().clear(),
        )
        st.html(STYLE)
        page_guide.show()


def session() -> Session:
    return st.session_state["session"]


def finish() -> None:
    """End a page."""
    page_guide.offer_first_lesson()
    widgets.act_if_pressed()  # one that isn't drawn any more
    session_restore.stay_here()
    keep_input_drafts()
    state.end_run()


def finish_early() -> NoReturn:
    raise Finished


def theme() -> Theme:
    return Theme(dark=st.context.theme.type == "dark")


def _show_training() -> None:
    """Show the progress of a training on the other pages."""
    job = training.training_record().job
    if job is not None and training.is_under_way() and st.session_state["page"] != "Train":
        how = {"waiting": "is waiting for the server", "paused": "is paused at"}.get(job.state, "continues:")
        progress = "" if job.state == "waiting" else f" step {job.progress.step:,} of {job.progress.steps:,}"
        st.caption(f"Your training {how}{progress}.")


def _clamped(current: PageState, model: OpenModel) -> PageState:
    """With the layer and the head that the shell shows: those of this model."""
    config, card = model.checkpoint.model.config, model.checkpoint.card
    if kind := attention_kinds.shown_kind(config, current.attention):
        layer, head = current.layer, current.head
        if layer is None and head is None:
            layer, head = attention_kinds.first_layer_and_head(config, card, kind)
        layer = min(layer or 0, attention_kinds.layer_count(config, kind) - 1)
        return replace(current, layer=layer, head=min(head or 0, config.n_heads - 1))
    return current

"""Draws the frame of every page: heading, model, prompt, changes, notices and link."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.components.assets import reader, without_comments
from pages.ui.components.copy_button import copy_button
from pages.ui.components.events import hear_all
from pages.ui.components.input_drafts import keep_input_drafts
from pages.ui.computations import activations
from pages.ui.computations.activations import Interventions, Tokens
from pages.ui.figures.palette import Theme
from pages.ui.frame import changes, page_guide, prompt_bar, saved_view, selection_sync, session_restore, state, widgets
from pages.ui.frame.page_text import Text
from pages.ui.frame.state import visitor
from pages.ui.frame.url_parameters import TOO_LONG, embedded, left_out
from pages.ui.frame.visitor_choices import Visitor
from pages.ui.index_page import ICON
from pages.ui.markdown import JOINER, passage, plain
from pages.ui.models import attention_kinds, library
from pages.ui.models.changes import Changes, in_force
from pages.ui.number_format import percent
from pages.ui.session import visitor_training as training
from pages.ui.session.session_store import session_record
from pages.ui.session.visitor_models import is_own
from transformer import ModelConfig

PAGES = {
    "Generate": "Generate.py",
    "Learn": "Learn.py",
    "Attention": "Attention.py",
    "Inside": "Inside.py",
    "Masks": "Masks.py",
    "Positions": "Positions.py",
    "What if": "What_if.py",
    "Train": "Train.py",
}
"""The file of each page, by its title. The file's name is the page's address."""
STYLE = f"<style>{without_comments(reader(__file__)('style.css'))}</style>"


@dataclass(frozen=True)
class Session:
    """What a page works on. `tokens` is None if the prompt can't be read; a message has said why.

    A decoder continues `tokens`: the prompt, or in an encoder–decoder the start token; there the prompt is `source`.
    `interventions` are in force in every pass of the page; `changes` are these and those that are off.
    """

    visitor: Visitor
    text: Text
    theme: Theme
    name: str
    config: ModelConfig
    prompt: str
    tokens: Tokens | None
    source: Tokens = ()
    changes: Changes = ()
    interventions: Interventions = ()

    @property
    def file_name(self) -> str:
        """The prefix of saved files."""
        return library.file_name(self.name)

    def require_tokens(self) -> Tokens:
        """The prompt's tokens; ends the page if there are none."""
        if self.tokens is None:
            finish_early()
        return self.tokens


@dataclass(frozen=True)
class PageOptions:
    """How a page opens.

    subtitle: one sentence below the title. writes: whether a text is written further while the page is open.
    reads_prompt: whether the page uses the prompt; if not, it says nothing of one that can't be read. uses_model:
    whether it uses the model; if not, the bar is one line on what the other pages show. has_bar: whether there is one.
    """

    subtitle: str
    writes: bool = False
    reads_prompt: bool = True
    uses_model: bool = True
    has_bar: bool = True


class Finished(Exception):
    """A page has nothing more to show, and its run ends."""


@dataclass
class PageLayout:
    """The containers of the frame, from top to bottom."""

    bar: DeltaGenerator
    """Where model and prompt stand, unless a page has a place of its own for them."""
    heading: DeltaGenerator
    notices: DeltaGenerator
    tools: DeltaGenerator | None = None
    """Buttons and menus of the bar, once it is there."""


def lay_out() -> PageLayout:
    """Create the empty frame."""
    return PageLayout(st.container(), st.container(key="frame_heading"), st.container(key="frame_notices"))


def open_page(
    layout: PageLayout,
    title: str,
    decide: Callable[[], PageOptions],
    *,
    first: Callable[[], DeltaGenerator | None] = lambda: None,
) -> None:
    """Fill the frame: browser title, bar, heading, notices. The page reads the result with `session()`.

    decide: says how the page opens, once the visitor's choices are known; it may still change them. first: draws what a
    page has to say of no model and no prompt, before they are picked: thirty who are led to it at once read that before
    the first of them has a whole page. It returns where the bar stands, if not on top.
    """
    hear_all()  # what was broken off, if anything was
    saved_view.restore_outside_lessons(title)
    current = state.begin_run(title)
    opening = st.session_state["opening"] = decide()
    st.set_page_config(
        page_title=f"{title} · HeadsUp", page_icon=ICON, layout="wide", initial_sidebar_state="collapsed"
    )
    begun: Text | None = st.session_state.get("text")
    library.begin_run(keep=begun.model if begun and begun.written else None)
    training.store_result()
    session_restore.find_record()
    with layout.heading:
        st.html(STYLE)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="heading_line"):
            st.title(title, anchor=False, width="content")
            if not st.context.is_embedded:  # a frame in another page has less room
                st.caption(opening.subtitle)
            changed = st.empty()
            if not st.context.is_embedded:
                page_guide.offer_first_lesson()
            page_guide.show()
        saved_view.show_back_links()
        _show_training()
    place, fields = first() or layout.bar, layout.bar
    if opening.has_bar:
        with place, st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="frame_bar"):
            fields = st.container(horizontal=True, vertical_alignment="top", gap="small", key="frame_fields")
            layout.tools = st.container(horizontal=True, gap="xsmall", width="content", key="frame_tools")
    with fields:
        name, prompt = prompt_bar.pick(current, finish_early, is_whole=opening.uses_model, is_shown=opening.has_bar)
    if layout.tools:
        with layout.tools:
            prompt_bar.offer_tools(name, prompt, is_whole=opening.uses_model)
    with layout.notices:
        tokens, source = prompt_bar.read_prompt(name, prompt) if opening.reads_prompt else (None, ())
        if opening.reads_prompt:
            prompt, tokens, source = _last_readable(name, prompt, tokens, source)
            state.link_prompt(prompt)
        interventions = _interventions_in_force(current, name, tokens, source, changed)
    text = _current_text(current, name, tokens, source, interventions)
    _clamp_selection(current, library.config(name), text if tokens else None)
    with layout.notices:  # last, so that it says what this run has found
        if tokens and (beyond := changes.beyond(interventions, len(text.tokens), len(source))):
            st.caption(f"No effect on this text: {plain('; '.join(map(str, beyond)))}. The text is too short.")
        if current.notices:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.warning(plain(" ".join(dict.fromkeys(current.notices))), icon=":material/info:")
                widgets.button("OK", current.notices.clear)
    st.session_state["session"] = Session(
        current, text, theme(), name, library.config(name), prompt, tokens, source, current.changes, interventions
    )


def session() -> Session:
    return st.session_state["session"]


def finish(layout: PageLayout) -> None:
    """End a page: update its link and the address bar."""
    widgets.act_if_pressed()  # one that isn't drawn any more
    if layout.tools:
        with layout.tools:
            _share()
    if missing := " and ".join(TOO_LONG[name] for name in left_out(state.linked_visitor())):
        layout.notices.caption(f"Too long for the link: {missing}. It is lost when you close this tab.")
    state.write_address()
    session_record().own_text = visitor().own_text
    session_restore.stay_here()
    typed, linked = visitor().prompt, state.linked_visitor().prompt
    keep_input_drafts(typed if typed != linked else None)
    state.end_run()


def _share() -> None:
    # Opening it runs the page, for a token that was clicked since is part of the view. It opens before that, with what
    # is in it; nobody is to copy the link of a moment ago.
    sharing = st.popover("Share", key="popover_link", on_change="rerun")
    if sharing.open:
        selection_sync.request()
    link = state.page_link()
    with sharing:
        st.caption("Anyone with this link sees this page as you do.")
        if is_own(visitor().model) or is_own(visitor().other_model or ""):
            st.caption("The link also gives access to your model.")
        # Closed, it has invisible text of the same size: a popover is positioned by its content as it opens. The
        # joiners keep Streamlit from stripping it.
        hidden = JOINER + "\u00a0" * len(link) + JOINER
        st.code(link if sharing.open else hidden, language=None, wrap_lines=True)
        copy_button("Copy link to embed", embedded(link), key="link_to_embed")


def finish_early() -> NoReturn:
    raise Finished


def theme() -> Theme:
    return Theme(dark=st.context.theme.type == "dark")


def _show_training() -> None:
    """Show the progress of a training on the other pages."""
    job = training.training_record().job
    if job is not None and training.is_under_way() and st.session_state["page"] != "Train":
        how = {"waiting": "is waiting for the server", "paused": "is paused at"}.get(job.state, "continues:")
        progress = "" if job.state == "waiting" else f" step {job.step:,} of {job.steps:,}"
        st.caption(f"Your training {how}{progress}.")


def _clamp_selection(current: Visitor, config: ModelConfig, text: Text | None) -> None:
    """Clamp layer, head and step to this model and text. text: None if there is none."""
    if kind := attention_kinds.shown_kind(config, current.attention):
        if current.layer is None and current.head is None:
            current.layer, current.head = attention_kinds.first_layer_and_head(
                config, library.model(current.model).card, kind
            )
        # A link that names one of them alone was made when the other was 0.
        current.layer, current.head = current.layer or 0, current.head or 0
        for name, count in (("layer", attention_kinds.layer_count(config, kind)), ("head", config.n_heads)):
            if (value := getattr(current, name)) >= count:
                current.notices.append(f"There is no {name} {value} here; the last one, {count - 1}, is shown.")
                setattr(current, name, count - 1)
    if text and current.step is not None and not 0 < current.step < len(text.tokens):
        current.notices.append(f"The text has no predicted token at position {current.step}; the last one is shown.")
        current.step = None


def _interventions_in_force(
    current: Visitor, name: str, tokens: Tokens | None, source: Tokens, container: DeltaGenerator
) -> Interventions:
    """The interventions of this page's passes, after listing them in the heading, where nothing moves."""
    interventions = in_force(current.changes)
    if not interventions or tokens is None:
        return interventions
    logits = activations.next_token(name, tokens, source, interventions)
    if not np.isfinite(logits).all():
        st.warning(
            "With these changes the model's numbers overflow, so the unchanged model is shown. Turn a change off.",
            icon=":material/science:",
        )
        return ()
    words = changes.in_words(interventions)
    if library.config(name).is_causal:
        unchanged = _likeliest(name, activations.next_token(name, tokens, source))
        words += f" After the prompt: {_likeliest(name, logits)}; unchanged: {unchanged}."
    container.markdown(f":material/science: {plain(words)}")
    return interventions


def _likeliest(name: str, logits: np.ndarray) -> str:
    """The likeliest token and its probability."""
    shares = np.exp(logits - logits.max())
    return f"“{library.tokenizer(name).label(int(logits.argmax()))}” {percent(float(1 / shares.sum()))}"


def _last_readable(name: str, prompt: str, tokens: Tokens | None, source: Tokens) -> tuple[str, Tokens | None, Tokens]:
    """The prompt and its tokens; while what is typed can't be read, the last that this model could, if there is one."""
    version = library.opened(name).version
    if tokens is not None:
        st.session_state["last_readable"] = version, (prompt, tokens, source)
    elif prompt.strip() and not state.is_text_restored():  # a link's text belongs to the link's prompt
        before, last = st.session_state.get("last_readable", ("", None))
        if last and before == version:
            st.caption(f"Shown below is the last prompt that could be read: {passage(last[0])}")
            return last
    return prompt, tokens, source


def _current_text(
    current: Visitor, name: str, tokens: Tokens | None, source: Tokens, interventions: Interventions
) -> Text:
    """The text on the page, without what was generated after another prompt or by another model."""
    model = library.opened(name)
    if tokens is None:
        return Text(model, ())
    before: Text | None = st.session_state.get("text")
    if state.is_text_restored():
        state.confirm_restored_text()  # no sooner: were this run cut short, the next would take the text for gone
    elif before is None or (before.model.version, before.prompt, before.source) != (model.version, tokens, source):
        current.written, current.branches = (), ""
        selection_sync.reset(current, "step", "zoom")
    size = model.checkpoint.model.config.vocab_size
    if any(token >= size for token in current.written):
        current.notices.append("The link's text was left out: it has tokens that this model doesn't know.")
        current.written, current.branches = (), ""
    text = st.session_state["text"] = Text(model, tokens, source, current.written, interventions)
    return text

"""Draws the start button, progress and stop button of a long computation."""

from typing import Any

import streamlit as st

from pages.ui.frame import widgets
from pages.ui.markdown import plain
from pages.ui.models import library
from pages.ui.models.model_cache import ModelCached
from pages.ui.session import visitor_job
from transformer.jobs import Job

POLL_INTERVAL = 0.5
"""Seconds between two looks at how far it is."""


def compute_with_progress(what: ModelCached, name: str, *args: Any, ask: str, does: str, **kwargs: Any) -> Any:
    """What a cached function gives; of a large model None until it has been asked for and computed.

    ask: the button's label. does: what is done meanwhile, in words.
    """
    model = library.opened(name)
    if not library.is_large(model.checkpoint):
        return what(model, *args, **kwargs)
    key = what.key(model, *args, **kwargs)
    known = what.known(model, *args, **kwargs)
    if known is not None:
        return known
    job = visitor_job.current(key)
    if job is None or job.done():
        if job is not None and job.was_stopped:
            st.caption("Stopped.")
        elif job is not None and (error := job.exception()) is not None:
            if isinstance(error, ValueError):  # a sentence for the visitor
                raise error
            st.warning("The computation failed. Try again, or shorten the prompt.")
        st.caption(f"{does} With a model of this size that takes a while. You can stop it, and use the page meanwhile.")
        compute = what.later(model, *args, **kwargs)
        widgets.button(ask, visitor_job.start, key, compute, key=f"begin_{ask}", icon="play_arrow", type="primary")
        return None
    st.fragment(_watch, run_every=POLL_INTERVAL)(job, does)
    return None


def _watch(job: Job[Any], does: str) -> None:
    if job.done():
        st.rerun()
    st.progress(job.share, text=plain(f"{does} {job.share:.0%}"))
    widgets.button("Stop", job.stop, key="stop_job", icon="stop")

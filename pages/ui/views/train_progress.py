"""Draws the page Train during and after a training: losses, snapshots, samples.

Dimensions: layer, head, query, key.
"""

import numpy as np
import pandas as pd
import streamlit as st

from pages.ui.components.head_grid import head_grid
from pages.ui.components.loss_chart import loss_chart
from pages.ui.frame import saved_view, widgets
from pages.ui.frame.model_files import offer_download
from pages.ui.frame.state import is_leaving_page
from pages.ui.frame.widgets import Binding
from pages.ui.host.exchange import change, choose_model, exchange, page_state
from pages.ui.markdown import code, counted, plain
from pages.ui.models.attention_kinds import KINDS
from pages.ui.number_format import percent
from pages.ui.session import visitor_training as training
from pages.ui.tables import offer_data
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.train_choice import in_words
from transformer.training.snapshots import Snapshot
from transformer.training.training_job import ENDED, TrainingJob

LOOK_EVERY = 1.0
"""Seconds between two updates of a running training."""
SAMPLE_HEIGHT = 173
"""Height of seven lines, in pixels; more is scrolled."""
NEWEST = "newest"
"""The label of the slider's right end, which stays where it is while snapshots are added."""
STATES = {
    "waiting": "Waiting for a place on the server",
    "running": "Training",
    "paused": "Paused",
    "finished": "Finished",
    "stopped": "Stopped",
    "failed": "Ended early",
}


def watch() -> None:
    """Draw the training, in a fragment that runs again by itself while the training runs."""
    interval = LOOK_EVERY if training.is_under_way() else None
    st.fragment(_watch, run_every=interval)()


def _watch() -> None:
    own = training.training_record()
    job = own.job
    if job is None:  # a button of this fragment has discarded it, and ran the fragment alone
        st.rerun()
    ended = job.state in ENDED
    if ended and st.session_state.get("training_seen_to_end") != id(job):
        st.session_state["training_seen_to_end"] = id(job)
        training.store_result()
        st.rerun()  # the list of models has one more, and the fragment can stop
    snapshots = list(job.progress.snapshots)
    chosen = _chosen(snapshots)
    settings, losses, attention = side_by_side("train", 3)
    with settings:
        st.header("What is trained", anchor=False)
        st.markdown(own.settings)
        _progress(job)
        _buttons(job)
        if ended:
            _result(job, own.model_token)
        _sample(job, chosen)
    with losses:
        st.header("Loss", anchor=False)
        loss_chart(
            key="loss",
            train=job.progress.batch_losses,
            validation=job.progress.validation_losses,
            references=own.references,
            steps=job.progress.steps,
            here=chosen.step if chosen else None,
        )
        unit = "nats per token" if own.is_causal else "nats per masked token"
        st.caption(f"Mean cross-entropy in {unit}: *training loss* on each batch, *validation loss* on held-out data.")
    with attention:
        if chosen:
            _attention(own.probe_text, snapshots, chosen)
    if ended:
        _tables(job, chosen)
    if is_leaving_page() or exchange().has_untold_changes():
        st.rerun()


def _progress(job: TrainingJob) -> None:
    ahead = training.queue().position(job) if job.state == "waiting" else None
    queued = f", place {ahead} in the queue" if ahead else ""
    state = "Evaluating the model" if job.finishing else STATES[job.state]
    now = job.progress
    speed = f" · {now.tokens_per_second:,.0f} tokens/s" if job.state == "running" and now.tokens_per_second else ""
    text = f"{state}{queued}: step {now.step:,} of {now.steps:,}{_times(job)}{speed}"
    st.progress(min(now.step / now.steps, 1.0), text)
    if job.problem:
        st.error(plain(job.problem))
    if job.reason:
        st.info(job.reason)


def _times(job: TrainingJob) -> str:
    """The time so far, and an estimate of the rest at the present speed, in words."""
    minutes, seconds = divmod(round(job.progress.seconds), 60)
    so_far = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    if job.state == "running" and job.progress.seconds_left:
        return f" · {in_words(job.progress.seconds_left)} left at this speed, {so_far} so far"
    return f" · {so_far}{'' if job.state in ENDED else ' so far'}" if job.progress.step else ""


def _buttons(job: TrainingJob) -> None:
    with st.container(horizontal=True, gap="small"):
        if job.state in ENDED:
            label = "Discard the model and train another" if training.training_record().problem else "Train another"
            widgets.button(label, _leave, key="train_another", icon="restart_alt")
            return
        if job.state == "paused":
            widgets.button("Resume", job.resume, key="train_resume", icon="play_arrow")
        else:
            widgets.button(
                "Pause", job.pause, key="train_pause", icon="pause", disabled=job.state != "running" or job.finishing
            )
        widgets.button(
            "Stop and keep",
            job.stop,
            key="train_stop",
            icon="stop",
            disabled=job.finishing,
            help="Ends the training and keeps the model as it is now.",
        )


def _leave() -> None:
    change(snapshot=None)
    training.end_training()


def _result(job: TrainingJob, name: str | None) -> None:
    if job.state == "stopped" and not job.progress.step:
        st.info("The training was stopped before its first step, so there is no model.")
    if (result := job.checkpoint) is None:
        return
    card = result.card
    if name is None:
        with st.container(border=True):
            st.warning(plain(f"{card.title} isn't among your models yet. {training.training_record().problem}"))
            offer_download("Download it", card.title, lambda: result, key="download_model")
        return
    does = "answers" if training.training_record().is_causal else "fills the masks of"
    exact = "" if card.accuracy is None else f" It {does} {percent(card.accuracy)} of unseen examples correctly."
    with st.container(border=True):
        st.markdown(
            f"**{plain(card.title, 90)}** is now one of your models.{exact} Only you, and people with your link, can "
            "see it; it is deleted a day after its last use."
        )
        with st.container(horizontal=True, gap="small"):
            widgets.button(
                "Generate with it" if training.training_record().is_causal else "Fill masks with it",
                _open,
                name,
                "Generate",
                key="open_generate",
                icon="edit_note",
                type="primary",
            )
            widgets.button("Look at its attention", _open, name, "Attention", key="open_attention", icon="grid_on")
            offer_download("Download it", card.title, lambda: result, key="download_model")


def _open(name: str, page: str) -> None:
    choose_model(name)
    saved_view.open_page(page)


def _chosen(snapshots: list[Snapshot]) -> Snapshot | None:
    """The snapshot of the slider; the newest unless the visitor has gone back."""
    if not snapshots:
        return None
    steps = [snapshot.step for snapshot in snapshots]
    back = page_state().snapshot
    return snapshots[steps.index(back)] if back in steps else snapshots[-1]


def _attention(probe_text: str, snapshots: list[Snapshot], chosen: Snapshot) -> None:
    st.header("Attention during training", anchor=False)
    steps = [snapshot.step for snapshot in snapshots]
    if len(steps) > 1:
        back = chosen.step if page_state().snapshot in steps else NEWEST
        widgets.select_slider(
            "Step",
            [*steps, NEWEST],
            Binding("snapshot", value=back, take=lambda at: change(snapshot=None if at == NEWEST else at)),
            grows=True,
            help="Choose an earlier step. The right end follows the newest.",
        )
    filled = "" if chosen.accuracy is None else f", {percent(chosen.accuracy)} of held-out masks filled correctly"
    st.caption(f"After **{counted(chosen.step, 'step')}**: validation loss {chosen.validation_loss:#.3g}{filled}.")
    names = [kind.capitalize() for kind in chosen.patterns]
    tabs = st.tabs(names) if len(names) > 1 else [st.container() for _ in names]
    for tab, (kind, patterns) in zip(tabs, chosen.patterns.items(), strict=True):
        with tab:
            if kind != "self":
                st.caption(KINDS[kind])
            patterns = np.asarray(patterns, dtype=np.float32)
            is_causal = kind == "decoder" or (kind == "self" and training.training_record().is_causal)
            hidden = ~np.tri(*patterns.shape[2:], dtype=bool) if is_causal else None
            head_grid(key=f"training_{kind}", patterns=patterns, hidden=hidden)
    st.caption(f"Rows: queries; columns: keys. Always this text: {code(probe_text)}")


def _sample(job: TrainingJob, chosen: Snapshot | None) -> None:
    own = training.training_record()
    title, always = ("What it writes", "continuing") if own.is_causal else ("What it fills in", "in")
    st.header(title, anchor=False)
    if chosen is None:
        ended = job.state in ENDED
        st.caption("No step was taken." if ended else "The first snapshot brings a sample.")
        return
    st.code(chosen.sample or " ", language=None, wrap_lines=True, height=SAMPLE_HEIGHT)
    st.caption(f"After {counted(chosen.step, 'step')}, always {always} {code(own.sample_prompt)}")


def _tables(job: TrainingJob, chosen: Snapshot | None) -> None:
    if job.progress.batch_losses or job.progress.validation_losses:
        offer_data(lambda: _losses(job), "The losses as a table", "training.csv")
    if chosen and chosen.patterns:
        offer_data(
            lambda: pd.concat(_weights(kind, patterns) for kind, patterns in chosen.patterns.items()),
            f"Attention after {counted(chosen.step, 'step')}, as a table",
            f"attention-step-{chosen.step}.csv",
        )


def _losses(job: TrainingJob) -> pd.DataFrame:
    batches = pd.DataFrame(job.progress.batch_losses, columns=["step", "training loss (nats)"])
    validation = pd.DataFrame(job.progress.validation_losses, columns=["step", "validation loss (nats)"])
    return batches.merge(validation, how="outer", on="step")


def _weights(kind: str, patterns: np.ndarray) -> pd.DataFrame:
    """A table with a row per weight. patterns: (layer, head, query, key)."""
    indices = zip(("layer", "head", "query", "key"), np.indices(patterns.shape), strict=True)
    return pd.DataFrame(
        {
            "attention": kind,
            **{name: index.ravel() for name, index in indices},
            "weight": patterns.ravel().astype(np.float32),
        }
    )

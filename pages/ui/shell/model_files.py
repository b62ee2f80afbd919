"""Models as files that a visitor takes along: uploaded here, downloaded where they were trained."""

from __future__ import annotations

import hashlib

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from pages.ui.markdown import plain
from pages.ui.models.library import slug
from pages.ui.models.own_models import keep, own_models
from pages.ui.shell.model_picker import choose_model
from transformer import Checkpoint, CheckpointError
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint


def exchange() -> None:
    """Upload a model that was downloaded before, here or elsewhere; download those the visitor has."""
    with st.expander("Your models as files", icon=":material/folder_zip:"):
        uploaded = st.file_uploader("Upload a model that was downloaded from HeadsUp", type="zip", key="model_file",
                                    max_upload_size=32)  # fmt: skip
        if uploaded is not None:
            _take(uploaded)
        for name, checkpoint in own_models().items():
            offer_download(f"Download {plain(checkpoint.card.title, 60)}", checkpoint, key=f"download_{name}")


def offer_download(label: str, checkpoint: Checkpoint, key: str) -> None:
    """A button that saves a model as one file."""
    st.download_button(label, lambda: pack_checkpoint(checkpoint), f"{slug(checkpoint.card.title)}.headsup.zip",
                       "application/zip", key=key, on_click="ignore", icon=":material/download:")  # fmt: skip


def _take(uploaded: UploadedFile) -> None:
    """Open an uploaded model, once an upload; the page runs again and again while the file stays in its box."""
    content = uploaded.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    opened: dict[str, str] = st.session_state.setdefault("opened_files", {})
    if st.session_state.get("taken_upload") != uploaded.file_id:
        if opened.get(digest) not in own_models():  # new, or dropped as the oldest since
            try:
                opened[digest] = keep(unpack_checkpoint(content))
            except CheckpointError as error:
                st.error(plain(f"{uploaded.name} can't be opened. {error}"))
                return
        st.session_state["taken_upload"] = uploaded.file_id
        choose_model(opened[digest])
        st.rerun()  # the sidebar has a model more
    if opened[digest] in own_models():
        title = plain(own_models()[opened[digest]].card.title, 100)
        st.success(f"{title} is among your models now, in the list of every page.")

"""Lists a visitor's models, and downloads, uploads and removes them."""

import hashlib
from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.ui.frame import widgets
from pages.ui.host.exchange import choose_model, page_state
from pages.ui.host.page_state import DEFAULT_MODEL
from pages.ui.markdown import plain
from pages.ui.models import library
from pages.ui.models.library import slug
from pages.ui.session.visitor_models import MAX_MODELS, StorageFullError, add_model, own_models, remove_model
from transformer import Checkpoint, CheckpointError
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint


def exchange() -> None:
    """Upload a model that was downloaded before, here or elsewhere; download or remove those the visitor has."""
    with st.expander("Your models as files", icon=":material/folder_zip:"):
        uploaded = st.file_uploader(
            "Upload a model that was downloaded from HeadsUp", type="zip", key="model_file", max_upload_size=32
        )
        if uploaded is not None:
            _take(uploaded)
        for token, entry in own_models().items():
            title = plain(entry.card.title, 60)
            with st.container(horizontal=True, gap="small"):
                offer_download(
                    f"Download {title}", entry.card.title, lambda own=token: library.model(own), key=f"download_{token}"
                )
                widgets.button(f"Remove {title}", _remove, token, key=f"remove_{token}", icon="delete")
        st.caption(f"You can have {MAX_MODELS} models. Each is deleted a day after its last use.")


def offer_download(label: str, title: str, load: Callable[[], Checkpoint], key: str) -> None:
    """A button that saves a model as one file. load: opens it once the button is pressed."""
    widgets.download_button(
        label, lambda: pack_checkpoint(load()), f"{slug(title)}.headsup.zip", "application/zip", key=key
    )


def _remove(token: str) -> None:
    remove_model(token)
    if page_state().model == token:
        choose_model(DEFAULT_MODEL)


def _take(uploaded: Any) -> None:
    """Open what `st.file_uploader` returned, once an upload; the page runs again while the file stays in its box."""
    content = uploaded.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    opened: dict[str, str] = st.session_state.setdefault("opened_files", {})
    if st.session_state.get("taken_upload") != uploaded.file_id:
        if opened.get(digest) not in own_models():  # new, or removed since
            try:
                opened[digest] = add_model(unpack_checkpoint(content))
            except CheckpointError as error:
                st.error(plain(f"{uploaded.name} can't be opened: {error}"))
                return
            except StorageFullError as error:
                st.warning(plain(str(error)))
                return
        st.session_state["taken_upload"] = uploaded.file_id
        choose_model(opened[digest])
        st.rerun()  # the list of models has one more
    if opened[digest] in own_models():
        title = plain(own_models()[opened[digest]].card.title, 100)
        st.success(f"{title} is now one of your models.")

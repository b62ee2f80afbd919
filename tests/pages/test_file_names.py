"""Tests that saved files of a visitor's model are named by its title, not by its secret name."""

from dataclasses import replace

import pytest
import streamlit as st

from pages.ui.models.library import slug
from tests.app_driver import choose, given, go, open_drawers, start
from tests.tiny_models import save_tiny
from transformer.checkpoints.archive import pack_checkpoint

TITLE = "Mi modelo, 2.0 / ñandú"
SLUG = "mi-modelo-2-0-ñandú"


@pytest.fixture
def names(monkeypatch):
    """The names of all files that pages offer, from now on."""
    found, plain = [], st.download_button

    def offered(label, data, file_name=None, *args, **options):
        found.append(file_name)
        return plain(label, data, file_name, *args, **options)

    monkeypatch.setattr(st, "download_button", offered)
    return found


def with_own_model(page, tmp_path):
    """A page that shows a model which the visitor has uploaded, its drawers open."""
    own = save_tiny(tmp_path, "own", context_length=16)
    file = pack_checkpoint(replace(own, card=replace(own.card, title=TITLE)))
    at = start("Train")
    uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
    uploader.upload("model.headsup.zip", file, "application/zip").run()
    at = choose(go(at, page), "Model", next(name for name in at.session_state["session_record"].models))
    return open_drawers(at)


@pytest.mark.parametrize("page", ["Attention", "Inside", "Masks", "Positions", "What if", "Generate"])
def test_an_own_model_s_files_are_called_by_its_title(page, folder, names, tmp_path):
    at = with_own_model(page, tmp_path)
    assert f"{SLUG}.headsup.zip" in names
    own = [name for name in names if name.startswith(SLUG)]
    # What if has none before something is asked; those of Generate the browser makes, called by the title below.
    assert page in ("Generate", "What if") or len(own) > 1
    assert not [name for name in names if "own-" in name]
    if page in ("Attention", "Inside", "Generate"):
        assert given(at)["title"] == SLUG


def test_a_title_makes_a_name_that_every_system_takes():
    found = {"Mi modelo, 2.0": "mi-modelo-2-0", "../..": "model", "": "model", "a" * 99: "a" * 60}
    assert {title: slug(title) for title in found} == found

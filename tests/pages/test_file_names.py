"""Tests that saved files of a visitor's model are named by its title, not by its secret name."""

from dataclasses import replace

import streamlit as st

from pages.ui.models.library import slug
from tests.app_driver import choose, given, go, open_drawers, open_folds, start
from tests.tiny_models import save_tiny
from transformer.checkpoints.archive import pack_checkpoint

TITLE, SLUG = "Mi modelo, 2.0 / ñandú", "mi-modelo-2-0-ñandú"


def test_an_own_model_s_files_are_called_by_its_title(folder, monkeypatch, tmp_path):
    names, plain = [], st.download_button

    def offered(label, data, file_name=None, *args, **options):
        names.append(file_name)
        return plain(label, data, file_name, *args, **options)

    monkeypatch.setattr(st, "download_button", offered)
    own = save_tiny(tmp_path, "own", context_length=16)
    file = pack_checkpoint(replace(own, card=replace(own.card, title=TITLE)))
    at = start("Train")
    uploader = next(box for box in at.get("file_uploader") if "Upload a model" in box.label)
    uploader.upload("model.headsup.zip", file, "application/zip").run()
    assert f"{SLUG}.headsup.zip" in names
    (token,) = at.session_state["session_record"].models
    for page in ("Attention", "Inside", "Masks", "Positions", "Generate"):
        at = go(at, page)
        at = choose(at, "Model", token) if page == "Attention" else at
        names.clear()
        open_drawers(open_folds(at))
        own_names = [name for name in names if name.startswith(SLUG)]
        # Those of Generate and Positions the browser makes, called by the model's file name.
        assert page in ("Generate", "Positions") or own_names, page
        assert not [name for name in names if "own-" in name], page
        assert SLUG in (given(at)["title"] if page in ("Attention", "Inside", "Generate") else str(given(at))), page


def test_a_title_makes_a_name_that_every_system_takes():
    found = {TITLE: SLUG, "../..": "model", "": "model", "a" * 99: "a" * 60}
    assert {title: slug(title) for title in found} == found

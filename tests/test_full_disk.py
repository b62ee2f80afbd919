"""Tests that a disk without room is called that, wherever something is written."""

import errno
import json
import os
import tempfile

import pooch
import pytest
from safetensors import SafetensorError
from safetensors.torch import save_file

from pages.ui.views.learn import lesson_upload
from tests.helpers import tiny_model
from tests.tiny_models import save_tiny
from transformer import CheckpointError, load_checkpoint, save_checkpoint
from transformer.__main__ import main
from transformer.api.model_store import ModelStore
from transformer.checkpoints.archive import pack_checkpoint, unpack_checkpoint
from transformer.checkpoints.exporting import export_pretrained
from transformer.checkpoints.folder import reason
from transformer.data import corpora, foreign_tokenizer, limited_process
from transformer.training import loop
from transformer.training.loop import TrainingConfig, TrainingRun

WORDS = {
    errno.ENOSPC: "there is no room left on the disk",
    errno.EDQUOT: "the disk's quota is used up",
    errno.EROFS: "the disk can only be read",
}


def check_lesson(checkpoint, folder):
    problem = lesson_upload.checked(b"+++\n+++\n").problem
    assert problem.startswith("The server can't check a lesson at the moment: ")
    raise CheckpointError(problem)


def try_tokenizer(checkpoint, folder):
    told = json.loads(checkpoint.tokenizer.to_json())
    told["pre_tokenizer"]["pattern"] = {"Regex": "a+|b"}
    foreign_tokenizer._problem.cache_clear()
    foreign_tokenizer.refuse_slow(told)


WRITES = {
    "a checkpoint": lambda checkpoint, folder: save_checkpoint(folder / "saved", checkpoint),
    "an export": lambda checkpoint, folder: export_pretrained(folder / "exported", checkpoint),
    "a visitor's model": lambda checkpoint, folder: ModelStore(folder / "store").put(checkpoint),
    "an upload": lambda checkpoint, folder: unpack_checkpoint(pack_checkpoint(checkpoint)),
    "a lesson": check_lesson,
    "a stranger's tokenizer": try_tokenizer,
}


@pytest.fixture
def checkpoint(tmp_path):
    return save_tiny(tmp_path, "tiny", positions="learned", activation="gelu_tanh")


@pytest.mark.parametrize("number", WORDS, ids=errno.errorcode.get)
@pytest.mark.parametrize("what", WRITES)
def test_a_full_disk_is_called_that(what, number, checkpoint, tmp_path, monkeypatch):
    def full(*args, **more):
        raise OSError(number, os.strerror(number), str(tmp_path))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises((CheckpointError, ValueError), match=WORDS[number]) as caught:
        WRITES[what](checkpoint, tmp_path)
    assert str(tmp_path) not in str(caught.value) and "Errno" not in str(caught.value)
    assert load_checkpoint(tmp_path / "tiny")


def test_where_no_folder_takes_temporary_files_that_is_said(checkpoint, monkeypatch):
    """As Python finds when each is full, even if it can be written to otherwise."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc"])
    with pytest.raises(CheckpointError, match="no folder for temporary files has room left"):
        unpack_checkpoint(pack_checkpoint(checkpoint))


def test_so_it_is_where_libraries_write_whose_errors_are_their_own(checkpoint, tmp_path, monkeypatch, capsys):
    there_is_no_folder = r"\(os error 2\)"
    with pytest.raises(SafetensorError, match=there_is_no_folder) as caught:
        save_file({}, tmp_path / "nowhere" / "model.safetensors")
    with pytest.raises(Exception, match=there_is_no_folder):
        checkpoint.tokenizer.save(tmp_path / "nowhere" / "tokenizer.json")
    no_room = SafetensorError(str(caught.value).replace("(os error 2)", "(os error 28)"))
    assert reason(no_room) == WORDS[errno.ENOSPC]

    def fill(*args, **more):
        raise no_room

    monkeypatch.setattr(loop, "save_file", fill)
    with pytest.raises(OSError, match=f"state .* can't be written to .*: {WORDS[errno.ENOSPC]}"):
        TrainingRun(tiny_model(), TrainingConfig(steps=1)).save(tmp_path / "state")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "site/index.html")

    def fail(*args, **more):
        raise full

    monkeypatch.setattr("transformer.commands.write_site", fail)
    monkeypatch.setattr(pooch, "retrieve", fail)
    assert main(["--checkpoints", str(tmp_path), "site", str(tmp_path / "site")]) == 1
    assert capsys.readouterr().err == f"Error: site/index.html can't be written: {WORDS[errno.ENOSPC]}.\n"
    source = next(source for source in corpora.SOURCES.values() if source.url)
    with pytest.raises(corpora.CorpusError, match=f"can't be kept in .*: {WORDS[errno.ENOSPC]}"):
        corpora._download(source, None)


def test_a_program_that_can_not_say_its_answer_for_want_of_room_is_not_blamed(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text("def answer(request):\n    return 1\n", encoding="utf-8")
    with open("/dev/full", "r+b", buffering=0) as full:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda: full)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            limited_process.answer_of(program, None, deadline=60.0, seconds=5, memory=2**26, output=1000)

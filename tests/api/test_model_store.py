"""Tests the store of visitors' models: tokens, expiry, size limit."""

import logging
import shutil
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_models import save_tiny
from transformer import CheckpointError
from transformer.api import model_store as stores
from transformer.api.limits import Share
from transformer.api.model_store import ModelStore, checkpoint_bytes, is_token, model_store


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A checkpoint to put."""
    return save_tiny(tmp_path_factory.mktemp("tiny"), "model")


@pytest.fixture
def clock():
    """Seconds, as the store sees them."""
    return [1_700_000_000.0]


@pytest.fixture(params=["memory", "folder"])
def make(request, tmp_path, clock):
    """Makes a store on the clock."""
    folder = tmp_path / "store" if request.param == "folder" else None
    return lambda **options: ModelStore(folder, now=lambda: clock[0], **options)


def test_a_model_is_found_under_its_token_until_it_is_forgotten(make, tiny):
    store = make()
    token, other = store.put(tiny), store.put(tiny)
    assert is_token(token) and token != other
    assert store.get(token) is tiny and token in store
    store.forget(token)
    assert store.get(token) is None and token not in store
    assert store.get(other) is tiny


HOSTILE = [
    *("", "../", "..", "own-", "own-../../etc/passwd", "own-" + "a" * 31, "own-" + "a" * 33, "own-" + "A" * 32),
    *("own-" + "a" * 32 + "\n", "own-" + "a" * 31 + "/", "/own-" + "a" * 32, "own-" + "é" * 32, "own-" + "１" * 32),
    *(None, 3, b"own-"),
]
TEXTS = st.text(max_size=60) | st.text("./\\0own-abcdef", max_size=40).map("own-{}".format)


@given(TEXTS | st.sampled_from(HOSTILE))
def test_no_text_but_a_token_reaches_the_disk(text):
    class Untouchable:
        def __truediv__(self, other):
            raise AssertionError(f"{other!r} became part of a path")

    store = ModelStore()
    store.folder = Untouchable()
    if text in HOSTILE or not stores.TOKEN.fullmatch(text):
        assert store.get(text) is None and text not in store
        store.forget(text)


def test_what_nobody_used_for_a_day_goes_and_a_use_is_a_use(make, tiny, clock):
    store = make()
    used, left = store.put(tiny), store.put(tiny)
    for _ in range(3):
        clock[0] += stores.LIFETIME * 0.6
        assert store.get(used) is tiny
    assert store.get(left) is None and left not in store
    if store.folder:
        assert [path.name for path in store.folder.iterdir()] == [used]


def test_those_used_least_recently_make_room(make, tiny, clock):
    store = make(limit=3 * checkpoint_bytes(tiny) + (30_000 if make().folder else 100))
    tokens = []
    for _ in range(3):
        clock[0] += 1
        tokens.append(store.put(tiny))
    clock[0] += 1
    assert store.get(tokens[0])
    clock[0] += 1
    tokens.append(store.put(tiny))
    assert [token in store for token in tokens] == [True, False, True, True]


@pytest.mark.parametrize(("new_name", "address"), [("{}", "192.0.2.1"), ("", "192.0.2.1"), ("", None)])
def test_whoever_has_most_makes_room_and_pushes_out_nobody_else(make, tiny, clock, new_name, address):
    """A few with a model each, a class behind one address, and someone who uploads on and on."""
    store = make(limit=20 * (checkpoint_bytes(tiny) + (8_000 if make().folder else 0)))
    few = [Share(f"visitor {number}", f"198.51.100.{number}") for number in range(2)]
    class_of = [Share(f"strangers 203.0.113.7 {number % 8}", "203.0.113.7") for number in range(8)]
    others = [store.put(tiny, share) for share in (*few, *class_of)]
    for number in range(15):
        clock[0] += 1
        newest = store.put(tiny, Share(f"visitor new {new_name.format(number)}", address))
        assert newest in store and all(token in store for token in others)


def test_a_model_larger_than_the_store_is_refused_and_nothing_goes(make, tiny, tmp_path):
    store = make(limit=checkpoint_bytes(tiny) + 30_000)
    token = store.put(tiny)
    with pytest.raises(CheckpointError, match=r"at most .* MB can be kept"):
        store.put(save_tiny(tmp_path, "large", n_layers=8))
    assert token in store


def test_a_folder_outlives_the_process_and_is_seen_by_every_replica(tmp_path, tiny, caplog):
    caplog.set_level(logging.DEBUG)
    one, other = ModelStore(tmp_path), ModelStore(tmp_path)
    token = one.put(tiny)
    found = other.get(token)
    assert found is not tiny and found.card == tiny.card
    assert all(weight.equal(found.model.state_dict()[name]) for name, weight in tiny.model.state_dict().items())
    assert other.get(token) is found  # once
    (tmp_path / token / "config.json").write_text("{")
    assert ModelStore(tmp_path).get(token) is None
    assert "can't be read" in caplog.text and token not in caplog.text and token[4:] not in caplog.text
    other.forget(token)
    assert one.get(token) is None and list(tmp_path.iterdir()) == []


def test_a_folder_that_can_not_be_written_is_a_sentence_without_a_token(tmp_path, tiny, caplog):
    store = ModelStore(tmp_path / "store")
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "store").write_text("no folder")
    with pytest.raises(CheckpointError, match=r"^The model can't be kept.*Download it") as error:
        store.put(tiny)
    assert "own-" not in str(error.value) + caplog.text and error.value.__suppress_context__


def test_what_a_killed_process_left_is_tidied_and_other_files_stay(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(stores, "LEFT_OVER_AFTER", -1.0)
    others = [tmp_path / name for name in (".git", "notes", "shakespeare")]
    for path in [*others, tmp_path / f".gone-{'a' * 16}", tmp_path / f".own-{'b' * 32}.abcdefgh.tmp"]:
        path.mkdir()
    token = ModelStore(tmp_path).put(tiny)
    assert {path.name for path in tmp_path.iterdir()} == {token, *(path.name for path in others)}


def test_threads_share_a_store(make, tiny):
    store, lost = make(limit=40 * checkpoint_bytes(tiny) + 400_000), []

    def use():
        for _ in range(3):
            token = store.put(tiny)
            if store.get(token) is None:
                lost.append(token)
            store.forget(token)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not lost and (store.folder is None or list(store.folder.iterdir()) == [])


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    for setting, folder in ((str(tmp_path / "a" / "b"), tmp_path / "a" / "b"), ("", None)):
        monkeypatch.setenv(stores.FOLDER_VARIABLE, setting)
        model_store.cache_clear()
        assert model_store().folder == folder and model_store() is model_store()
    model_store.cache_clear()

"""Tests how corpora are found, cached, downloaded and verified, and that a failed download leaves nothing."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest

from transformer import CorpusError, load_corpus
from transformer.data.corpora import SOURCES, CorpusSource, is_at_hand

TEXT = "Aquí me pongo a cantar\r\nal compás de la vigüela.\n" * 2000
CONTENT = TEXT.encode()


class Server(BaseHTTPRequestHandler):
    """Answers as the path says."""

    asked: list[str]

    def do_GET(self):
        what = self.path.strip("/")
        self.asked.append(what)
        self.send_response({"missing": 404, "broken": 500}.get(what, 200))
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        answers = {"cut-short": CONTENT[: len(CONTENT) // 2], "damaged": CONTENT[:-1] + b"!"}
        self.wfile.write(answers.get(what, CONTENT))

    def log_message(self, *arguments):
        """Be quiet."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "HEADSUP_CORPORA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(Server, "asked", [], raising=False)
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def register(monkeypatch, address):
    """Says where the small corpus is downloaded from: from where nothing goes wrong, unless a test says otherwise."""

    def register(url: str) -> None:
        about = ("small", "A small text", "Spanish", "public domain", 0.75, "small.txt")
        monkeypatch.setitem(SOURCES, "small", CorpusSource(*about, url, hashlib.sha256(CONTENT).hexdigest()))

    register(f"{address}/good")
    return register


def put(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "small.txt").write_bytes(content)
    return folder


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


def test_it_is_found_in_the_folder_that_is_named_and_then_in_that_of_the_environment(tmp_path, monkeypatch):
    corpus = load_corpus("small", put(tmp_path / "mine"))
    train, validation = corpus.split()
    assert corpus.text == train + validation == TEXT  # line ends as they are, too
    assert len(train) == int(0.75 * len(TEXT)) and corpus.sha256 == SOURCES["small"].sha256
    monkeypatch.setenv("HEADSUP_CORPORA", str(tmp_path / "mine"))
    for folder in (None, tmp_path / "nothing here"):
        assert load_corpus("small", folder).text == TEXT
    monkeypatch.setenv("HEADSUP_CORPORA", str(put(tmp_path / "damaged", b"another text")))
    assert load_corpus("small", tmp_path / "mine").text == TEXT
    assert Server.asked == []


def test_else_it_is_downloaded_once_and_then_cached(cache):
    reports = []
    assert not is_at_hand("small")
    load_corpus("small", progress=lambda received, expected: reports.append((received, expected)))
    assert 0 < reports[0][0] < len(CONTENT) and reports[-1] == (len(CONTENT), len(CONTENT))
    assert {expected for _, expected in reports} == {len(CONTENT)}
    assert load_corpus("small").text == load_corpus("small", cache / "nothing here").text == TEXT
    assert Server.asked == ["good"] and files(cache) == ["small.txt"] and is_at_hand("small")
    (cache / "headsup/small.txt").write_text("damaged")
    assert load_corpus("small").text == TEXT
    assert Server.asked == ["good"] * 2


@pytest.mark.parametrize("what", ["missing", "broken", "cut-short", "damaged", "nobody"])
def test_what_goes_wrong_leaves_nothing_behind_and_loses_no_good_file(register, address, cache, what):
    url = "http://127.0.0.1:9/small.txt" if what == "nobody" else f"{address}/{what}"
    register(url)
    with pytest.raises(CorpusError, match=r"could not be downloaded from .*small\.txt into a folder.*HEADSUP_CORPORA"):
        load_corpus("small")
    assert files(cache) == [] and not is_at_hand("small")
    register(f"{address}/good")
    assert load_corpus("small").text == TEXT
    register(url)
    assert load_corpus("small").text == TEXT
    assert files(cache) == ["small.txt"] and is_at_hand("small")


def test_a_file_with_another_checksum_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"small\.txt in .* is not the file it should be .*SHA-256.*127\.0\.0\.1"):
        load_corpus("small", put(tmp_path / "mine", CONTENT + b" "))
    assert Server.asked == []


def test_every_source_says_what_it_is_and_the_manual_of_python_is_always_there():
    for name, each in SOURCES.items():
        assert each.name == name and each.title and each.language and each.licence
        assert 0.5 < each.train_fraction < 1
        assert bool(each.url) == bool(each.file_name) == (len(each.sha256) == 64)
    corpus = load_corpus("python-manual")
    train, validation = corpus.split()
    assert len(corpus.text) > 300_000 and train + validation == corpus.text
    assert len(train) == int(0.9 * len(corpus.text))
    assert corpus.sha256 == load_corpus("python-manual").sha256
